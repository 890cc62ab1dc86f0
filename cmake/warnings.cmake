# Flags of every target. One place, so that a warning is a warning everywhere.
add_library(tarn_flags INTERFACE)
target_compile_definitions(tarn_flags INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(
  tarn_flags
  INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wall
            -Wextra
            -Wpedantic
            -Wconversion
            -Wshadow
            -Wstrict-prototypes
            -Wmissing-prototypes
            -Wvla
            -Wswitch-enum
            -fno-common>
            -fno-omit-frame-pointer)
if(TARN_WERROR)
  target_compile_options(tarn_flags INTERFACE -Werror)
endif()
if(TARN_SANITIZE)
  target_compile_options(tarn_flags INTERFACE -fsanitize=${TARN_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(tarn_flags INTERFACE -fsanitize=${TARN_SANITIZE})
endif()
