/* source/registry.h - schemas of a registry by number, as Confluent's registry serves them. */
#ifndef SOURCE_REGISTRY_H
#define SOURCE_REGISTRY_H

#include "base/buf.h"

typedef struct schema_registry schema_registry;
tarn_code registry_new(tarn_env *env, const char *url, schema_registry **out,
                       tarn_error *err) TARN_MUST_USE;
void registry_free(schema_registry *r); /* takes NULL */
/* The Avro schema with this number, as JSON, kept from then on; what Kafka Connect says beside a
 * type is said in Avro's own words. IO: the registry did not answer; it may be asked again. */
tarn_code registry_schema(schema_registry *r, int32_t id, tarn_str *out,
                          tarn_error *err) TARN_MUST_USE;

#endif
