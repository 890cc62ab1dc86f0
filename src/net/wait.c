/* net/wait.c - one poll at a time, short enough that a cancellation is soon seen. */
#include "net/wait.h"

#include <errno.h>
#include <poll.h>

#define SLICE_MS 100

tarn_code net_wait_readable(tarn_env *env, int fd, int64_t timeout_ms, bool cancellable,
                            bool *ready, tarn_error *err) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    *ready = false;
    for (int64_t left = timeout_ms;;) {
        tarn_code code = cancellable ? env_check_cancel(env, err) : TARN_OK;
        if (code != TARN_OK) {
            return code;
        }
        int n = poll(&one, 1, left < SLICE_MS ? (int)left : SLICE_MS);
        if (n > 0) {
            *ready = true;
            return TARN_OK;
        }
        if (n < 0 && errno != EINTR) {
            return err_os(err, errno, "waiting for a connection failed");
        }
        left -= SLICE_MS;
        if (left <= 0) {
            return TARN_OK;
        }
    }
}
