/* source/kafka.c - see source_int.h. */
#include "source/source_int.h"

bool kafka_is_location(const char *input) {
    return str_starts_with(str_of(input), STR("kafka://"));
}
