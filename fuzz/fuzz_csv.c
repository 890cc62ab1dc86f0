/* Fuzz target: CSV records as rows (format/text/text.h); see text_target.h.
 * rooms: format */
#include "text_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return run_text_target(data, size, TEXT_CSV);
}
