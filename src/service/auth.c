/* service/auth.c - see auth.h. */
#include "service/auth.h"

#include <pthread.h>
#include <stdio.h>

#include "base/json.h"

#define TOKEN_SECONDS 3600
#define MAX_TOKENS    100000

typedef struct issued {
    char token[65];
    int64_t ends_ms;
    const auth_caller *caller;
} issued;

struct auth_book {
    tarn_env *env;
    tarn_arena arena;
    atomic_int refs;
    int64_t seconds;
    int32_t n_clients, n_tokens;
    auth_caller *clients;
    auth_caller *tokens;
};

struct auth {
    tarn_env *env;
    bool open;
    pthread_mutex_t lock; /* of what follows */
    auth_book *book;
    issued *issued;
    int32_t n_issued, cap;
};

static const char *const ROLES[] = {"none", "read", "write", "admin"};

const char *auth_role_name(auth_role role) {
    return ROLES[role];
}

static tarn_code read_role(tarn_str text, auth_role *out, tarn_error *err) {
    for (int i = AUTH_READ; i <= AUTH_ADMIN; i++) {
        if (str_is(text, ROLES[i])) {
            *out = (auth_role)i;
            return TARN_OK;
        }
    }
    return err_set(err, TARN_INVALID, "access file: role \"%.*s\" is none of read, write, admin",
                   STR_ARG(text));
}

/* A misspelt member would take somebody's place away without a word. */
static tarn_code check_members(const json_value *json, const char *const *names, tarn_error *err) {
    if (!json_is(json, JSON_OBJECT)) {
        return err_set(err, TARN_INVALID, "access file: an entry is no object");
    }
    const json_value *odd = json_stranger(json, names);
    return odd == NULL ? TARN_OK
                       : err_set(err, TARN_INVALID, "access file: member \"%.*s\" is not known",
                                 STR_ARG(odd->name));
}

static tarn_code read_grant(auth_book *a, const json_value *json, auth_grant *out,
                            tarn_error *err) {
    static const char *const NAMES[] = {"namespace", "role", NULL};
    tarn_str ns, role;
    tarn_ident ident;
    tarn_code code = TARN_OK;
    TRY(check_members(json, NAMES, err));
    if (!json_str(json_get(json, "namespace"), &ns) || !json_str(json_get(json, "role"), &role)) {
        return err_set(err, TARN_INVALID,
                       "access file: a grant has no \"namespace\" or no \"role\"");
    }
    TRY(read_role(role, &out->role, err));
    if (!str_is(ns, "*")) {
        TRY(ident_parse(&a->arena, ns, true, &ident, err));
        out->n_levels = ident.n_levels;
        out->levels = ident.levels;
    }
done:
    return code;
}

/* What the entries of a list are told by and proven with. */
typedef struct caller_kind {
    const char *list, *id, *secret;
} caller_kind;

static tarn_code read_caller(auth_book *a, const json_value *json, const caller_kind *kind,
                             auth_caller *out, tarn_error *err) {
    const char *const names[] = {kind->id, kind->secret, "grants", NULL};
    tarn_code code = TARN_OK;
    int32_t at = 0;
    TRY(check_members(json, names, err));
    const json_value *grants = json_get(json, "grants");
    if (!json_str(json_get(json, kind->id), &out->name) || out->name.len == 0 ||
        !json_str(json_get(json, kind->secret), &out->secret) || out->secret.len == 0) {
        return err_set(err, TARN_INVALID, "access file: an entry has no \"%s\" or no \"%s\"",
                       kind->id, kind->secret);
    }
    if (!json_is(grants, JSON_ARRAY)) {
        return err_set(err, TARN_INVALID, "access file: \"%.*s\" has no \"grants\"",
                       STR_ARG(out->name));
    }
    auth_grant *items = ARENA_ARRAY(&a->arena, auth_grant, grants->count + 1);
    if (items == NULL) {
        return err_nomem(err);
    }
    for (const json_value *g = grants->first; g != NULL; g = g->next, at++) {
        code = read_grant(a, g, &items[out->n_grants++], err);
        TRY(code == TARN_OK ? code : err_add(err, code, "grants[%d]", (int)at));
    }
    out->grants = items;
    out->book = a;
done:
    return code;
}

static tarn_code read_callers(auth_book *a, const json_value *json, const caller_kind *kind,
                              auth_caller **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list = json_get(json, kind->list);
    *n = 0;
    if (list == NULL) {
        return TARN_OK;
    }
    if (list->kind != JSON_ARRAY) {
        return err_set(err, TARN_INVALID, "access file: \"%s\" is no array", kind->list);
    }
    *out = ARENA_ARRAY(&a->arena, auth_caller, list->count + 1);
    if (*out == NULL) {
        return err_nomem(err);
    }
    for (const json_value *v = list->first; v != NULL; v = v->next) {
        code = read_caller(a, v, kind, &(*out)[*n], err);
        TRY(code == TARN_OK ? code : err_add(err, code, "%s[%d]", kind->list, (int)*n));
        (*n)++;
    }
done:
    return code;
}

static tarn_code read_config(auth_book *a, tarn_str config, tarn_error *err) {
    static const char *const NAMES[] = {"token-seconds", "clients", "tokens", NULL};
    static const caller_kind CLIENTS = {"clients", "id", "secret"};
    static const caller_kind TOKENS = {"tokens", "name", "token"};
    json_value *json;
    tarn_code code = json_parse(&a->arena, config, "access file", &json, err);
    if (code == TARN_CORRUPT) {
        err->code = code = TARN_INVALID;
    }
    TRY(code);
    if (json->kind != JSON_OBJECT) {
        TRY(err_set(err, TARN_INVALID, "access file: it is no JSON object"));
    }
    TRY(check_members(json, NAMES, err));
    const json_value *seconds = json_get(json, "token-seconds");
    if (seconds != NULL && (!json_i64(seconds, &a->seconds) || a->seconds <= 0)) {
        TRY(err_set(err, TARN_INVALID, "access file: \"token-seconds\" is no positive number"));
    }
    TRY(read_callers(a, json, &CLIENTS, &a->clients, &a->n_clients, err));
    TRY(read_callers(a, json, &TOKENS, &a->tokens, &a->n_tokens, err));
    if (a->n_clients + a->n_tokens == 0) {
        code =
            err_set(err, TARN_INVALID, "access file: it names nobody in \"clients\" or \"tokens\"");
    }
done:
    return code;
}

static auth_book *book_new(tarn_env *env) {
    auth_book *book = env_calloc(env, 1, sizeof *book);
    if (book != NULL) {
        book->env = env;
        book->seconds = TOKEN_SECONDS;
        atomic_init(&book->refs, 1);
        arena_init(&book->arena, env);
    }
    return book;
}

tarn_code auth_read(tarn_env *env, tarn_str config, auth_book **out, tarn_error *err) {
    auth_book *book = book_new(env);
    if (book == NULL) {
        return err_nomem(err);
    }
    tarn_code code = read_config(book, config, err);
    if (code == TARN_OK) {
        *out = book;
    } else {
        auth_book_release(book);
    }
    return code;
}

void auth_book_release(auth_book *book) {
    if (book != NULL && atomic_fetch_sub(&book->refs, 1) == 1) {
        arena_release(&book->arena);
        env_free(book->env, book);
    }
}

static const auth_caller *hold(const auth_caller *caller) {
    if (caller != NULL) {
        (void)atomic_fetch_add(&caller->book->refs, 1);
    }
    return caller;
}

void auth_release(const auth_caller *caller) {
    if (caller != NULL) {
        auth_book_release(caller->book);
    }
}

tarn_code auth_new(tarn_env *env, tarn_str config, auth **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    auth *a = env_calloc(env, 1, sizeof *a);
    if (a == NULL) {
        return err_nomem(err);
    }
    a->env = env;
    a->open = config.len == 0;
    (void)pthread_mutex_init(&a->lock, NULL);
    if (a->open) {
        a->book = book_new(env);
        code = a->book != NULL ? TARN_OK : err_nomem(err);
    } else {
        code = auth_read(env, config, &a->book, err);
    }
    if (code == TARN_OK) {
        *out = a;
    } else {
        auth_free(a);
    }
    return code;
}

void auth_free(auth *a) {
    if (a != NULL) {
        (void)pthread_mutex_destroy(&a->lock);
        env_free(a->env, a->issued);
        auth_book_release(a->book);
        env_free(a->env, a);
    }
}

bool auth_is_open(const auth *a) {
    return a->open;
}

/* Takes as long for a wrong secret as for the right one of that length. */
static bool same_secret(tarn_str a, tarn_str b) {
    unsigned char differ = a.len != b.len;
    for (size_t i = 0; i < a.len; i++) {
        differ |= (unsigned char)(a.data[i] ^ b.data[b.len > 0 ? i % b.len : 0]);
    }
    return differ == 0;
}

/* Drops what has ended; the caller holds the lock. */
static void drop_ended(auth *a, int64_t now_ms) {
    int32_t kept = 0;
    for (int32_t i = 0; i < a->n_issued; i++) {
        if (a->issued[i].ends_ms > now_ms) {
            a->issued[kept++] = a->issued[i];
        }
    }
    a->n_issued = kept;
}

const auth_caller *auth_by_token(auth *a, tarn_str token) {
    const auth_caller *found = NULL;
    int64_t now_ms = env_now_ms(a->env);
    if (token.len == 0) {
        return NULL;
    }
    (void)pthread_mutex_lock(&a->lock);
    const auth_book *book = a->book;
    for (int32_t i = 0; i < book->n_tokens; i++) {
        found = same_secret(token, book->tokens[i].secret) ? &book->tokens[i] : found;
    }
    for (int32_t i = 0; i < a->n_issued && found == NULL; i++) {
        if (a->issued[i].ends_ms > now_ms && same_secret(token, str_of(a->issued[i].token))) {
            found = a->issued[i].caller;
        }
    }
    found = hold(found);
    (void)pthread_mutex_unlock(&a->lock);
    return found;
}

const auth_caller *auth_by_secret(auth *a, tarn_str id, tarn_str secret) {
    const auth_caller *found = NULL;
    (void)pthread_mutex_lock(&a->lock);
    const auth_book *book = a->book;
    for (int32_t i = 0; i < book->n_clients && found == NULL; i++) {
        if (str_eq(id, book->clients[i].name)) {
            found = same_secret(secret, book->clients[i].secret) ? &book->clients[i] : NULL;
            break;
        }
    }
    found = hold(found);
    (void)pthread_mutex_unlock(&a->lock);
    return found;
}

/* Who it is in another book; NULL: nobody, or with another secret. */
static const auth_caller *find_alike(const auth_book *book, const auth_caller *caller) {
    const auth_caller *const lists[] = {book->clients, book->tokens};
    const int32_t counts[] = {book->n_clients, book->n_tokens};
    for (int l = 0; l < 2; l++) {
        for (int32_t i = 0; i < counts[l]; i++) {
            if (str_eq(lists[l][i].name, caller->name) &&
                str_eq(lists[l][i].secret, caller->secret)) {
                return &lists[l][i];
            }
        }
    }
    return NULL;
}

void auth_replace(auth *a, auth_book *book) {
    int32_t kept = 0;
    (void)pthread_mutex_lock(&a->lock);
    for (int32_t i = 0; i < a->n_issued; i++) {
        const auth_caller *caller = find_alike(book, a->issued[i].caller);
        if (caller != NULL) {
            a->issued[kept] = a->issued[i];
            a->issued[kept++].caller = caller;
        }
    }
    a->n_issued = kept;
    auth_book *old = a->book;
    a->book = book;
    (void)pthread_mutex_unlock(&a->lock);
    auth_book_release(old);
}

/* Room for one more; the caller holds the lock. */
static tarn_code reserve_issued(auth *a, tarn_error *err) {
    if (a->n_issued < a->cap) {
        return TARN_OK;
    }
    if (a->n_issued >= MAX_TOKENS) {
        return err_set(err, TARN_LIMIT, "%d tokens are out at once", MAX_TOKENS);
    }
    int32_t cap = a->cap == 0 ? 64 : a->cap * 2;
    issued *more = env_realloc(a->env, a->issued, (size_t)cap * sizeof *more);
    if (more == NULL) {
        return err_nomem(err);
    }
    a->issued = more;
    a->cap = cap;
    return TARN_OK;
}

tarn_code auth_issue(auth *a, const auth_caller *caller, tarn_arena *arena, tarn_str *token,
                     int64_t *seconds, tarn_error *err) {
    unsigned char bytes[32];
    tarn_code code = TARN_OK;
    (void)pthread_mutex_lock(&a->lock);
    if (caller != NULL && caller->book != a->book) { /* it was replaced meanwhile */
        caller = find_alike(a->book, caller);
        if (caller == NULL) {
            TRY(err_set(err, TARN_DENIED, "the caller is not known any more"));
        }
    }
    drop_ended(a, env_now_ms(a->env));
    TRY(reserve_issued(a, err));
    issued *t = &a->issued[a->n_issued];
    env_random(a->env, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(t->token + 2 * i, 3, "%02x", bytes[i]);
    }
    t->ends_ms = env_now_ms(a->env) + a->book->seconds * 1000;
    t->caller = caller;
    *token = arena_str(arena, str_of(t->token));
    *seconds = a->book->seconds;
    if (token->data == NULL) {
        TRY(err_nomem(err));
    }
    a->n_issued++;
done:
    (void)pthread_mutex_unlock(&a->lock);
    return code;
}

/* How many levels of the grant the namespace has from its beginning. */
static int32_t common_levels(const auth_grant *g, const tarn_ident *ns) {
    int32_t n = 0;
    while (n < g->n_levels && n < ns->n_levels && str_eq(g->levels[n], ns->levels[n])) {
        n++;
    }
    return n;
}

bool auth_allows(const auth_caller *caller, const tarn_ident *ns, auth_role role) {
    if (caller == NULL || role == AUTH_NONE) {
        return true;
    }
    for (int32_t i = 0; i < caller->n_grants; i++) {
        const auth_grant *g = &caller->grants[i];
        if (g->role >= role && common_levels(g, ns) == g->n_levels) {
            return true;
        }
    }
    return false;
}

bool auth_sees(const auth_caller *caller, const tarn_ident *ns) {
    if (caller == NULL) {
        return true;
    }
    for (int32_t i = 0; i < caller->n_grants; i++) {
        int32_t n = common_levels(&caller->grants[i], ns);
        if (n == caller->grants[i].n_levels || n == ns->n_levels) {
            return true;
        }
    }
    return false;
}
