/* Goal: a program of somebody else's builds and runs against libtarn as it is shipped, shared and
 * static. Method: the least use of the API that needs code of the library. */
#include <stdio.h>
#include <string.h>

#include <tarn/tarn.h>

int main(void) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = NULL;
    if (tarn_env_new(NULL, &env, &err) != TARN_OK) {
        printf("%s\n", err.message);
        return 1;
    }
    if (tarn_env_memory_now(env) != 0 || strcmp(tarn_code_name(TARN_CONFLICT), "CONFLICT") != 0) {
        return 1;
    }
    tarn_env_free(env);
    return 0;
}
