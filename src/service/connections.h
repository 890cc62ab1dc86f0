/* service/connections.h - how many connections there are, what each is at, and until when.
 *
 * A client has to send its request, and to take the answer, in a time that grows with their bytes:
 * so one that sends a byte now and then holds nothing for long. While there are too many, those
 * that have waited longest without a whole request, or bring their bytes too slowly, are cut first,
 * and what is still too many is refused. Work on a request has no end by time.
 *
 * A connection's socket is open from connections_open to connections_close, so that another thread
 * may shut it down. Any thread. */
#ifndef SERVICE_CONNECTIONS_H
#define SERVICE_CONNECTIONS_H

#include "base/env.h"
#include "base/err.h"

typedef enum connection_stage {
    CONNECTION_WAITING, /* for a request, or the rest of its head */
    CONNECTION_COMING,  /* the head is there, the body comes */
    CONNECTION_AT_WORK,
    CONNECTION_ANSWERING
} connection_stage;

/* The caller's memory; all of it is private. */
typedef struct connection_entry {
    int fd;
    connection_stage stage;
    int64_t since_ms, until_ms;
    uint64_t bytes; /* of the stage */
    bool surplus;   /* there were too many when it came */
    bool cut;
    struct connection_entry *prev, *next;
} connection_entry;

typedef struct connection_limits {
    uint32_t connections;
    int64_t idle_ms;    /* between two requests */
    int64_t request_ms; /* for a request to come, or an answer to go, besides its bytes */
} connection_limits;

typedef struct connections connections;

tarn_code connections_new(tarn_env *env, const connection_limits *limits, connections **out,
                          tarn_error *err) TARN_MUST_USE;
/* None may be open. Takes NULL. */
void connections_free(connections *c);
/* A thread that looks for those whose time is over; IO where none can be had. */
tarn_code connections_watch(connections *c, tarn_error *err) TARN_MUST_USE;

void connections_open(connections *c, connection_entry *x, int fd);
void connections_close(connections *c, connection_entry *x);
/* The head of a request is there. False: there are too many; it is to be refused. */
bool connections_admit(connections *c, connection_entry *x);
/* bytes: of the body that came so far, or of the answer. */
void connections_stage(connections *c, connection_entry *x, connection_stage stage, uint64_t bytes);
/* Requests that are worked on or answered. */
int32_t connections_busy(connections *c);
/* What the thread does now and then. */
void connections_sweep(connections *c, int64_t now_ms);

#endif
