/* format/text/text_variant.c - variants from the JSON of a record or cell: parsed into a tree,
 * since names are known only at its end, and encoded (format/variant). */
#include "format/text/text_int.h"

/* What the JSON itself was refused for is the record's fault; all else is told in err. */
static tarn_code blame(text_decoder *d, const text_node *node, tarn_code code,
                       const tarn_error *why) {
    if (code == TARN_INVALID || code == TARN_CORRUPT) {
        return text_bad(d, node, "%s", why->message);
    }
    return code == TARN_NOMEM ? err_nomem(d->err) : err_set(d->err, code, "%s", why->message);
}

tarn_code text_put_variant(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str json) {
    tarn_code code = TARN_OK;
    tarn_error why = TARN_ERROR_INIT;
    tarn_arena arena;
    json_value *tree = NULL;
    arena_init(&arena, d->env);
    buf_reset(&d->variant_names);
    code = json_parse(&arena, json, "the value", &tree, &why);
    code = code == TARN_OK ? variant_from_json(&d->variant, tree, &d->variant_names, &why) : code;
    if (code != TARN_OK) {
        code = blame(d, node, code, &why);
        goto done;
    }
    TRY(builder_bytes(&b->children[0], buf_str(&d->variant_names), d->err));
    TRY(builder_bytes(&b->children[1], buf_str(&d->variant.out), d->err));
    code = builder_close(b, d->err);
done:
    arena_release(&arena);
    return code;
}
