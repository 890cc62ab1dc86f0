# What tarn stands on, all of it in Debian's packages.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(ZLIB REQUIRED)
find_package(BZip2 REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(BROTLI REQUIRED IMPORTED_TARGET libbrotlienc libbrotlidec)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(DEFLATE REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
find_library(SNAPPY_LIBRARY snappy REQUIRED)
find_path(SNAPPY_INCLUDE_DIR snappy-c.h REQUIRED)

add_library(tarn_deps INTERFACE)
target_include_directories(tarn_deps INTERFACE ${SNAPPY_INCLUDE_DIR})
target_link_libraries(tarn_deps INTERFACE Threads::Threads ZLIB::ZLIB BZip2::BZip2 PkgConfig::ZSTD PkgConfig::LZ4 PkgConfig::BROTLI
                                          PkgConfig::XXHASH PkgConfig::DEFLATE PkgConfig::SQLITE ${SNAPPY_LIBRARY} m)
