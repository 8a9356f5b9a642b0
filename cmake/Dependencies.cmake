# Third-party code, all from Debian 12; docs/dependencies.md says why each was chosen.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)
# Static wherever Debian has the archive, in every build: the executable then needs glibc alone, and what is tested is what
# is given away.
set(Boost_USE_STATIC_LIBS ON)
set(Protobuf_USE_STATIC_LIBS ON)
find_library(SQLite3_LIBRARY NAMES libsqlite3.a sqlite3)
find_package(SQLite3 REQUIRED)
find_library(ZLIB_LIBRARY NAMES libz.a z)
find_package(Boost REQUIRED COMPONENTS context)
find_package(Protobuf REQUIRED)
if(WARPLOOM_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()

target_precompile_headers(warploom_pch_holder PRIVATE
  <algorithm> <array> <cstdint> <cmath> <functional> <map> <memory> <optional> <set> <span> <string> <string_view>
  <utility> <variant> <vector> <tl/expected.hpp> <fmt/format.h> <nlohmann/json.hpp>)
target_link_libraries(warploom_pch_holder PRIVATE warploom_flags nlohmann_json::nlohmann_json)

# onnx.proto as Debian ships it, compiled here so that the static protobuf can carry it into one executable. The lite
# runtime that it asks for cannot read the text form, so that option is left out.
find_path(ONNX_PROTO_DIR onnx/onnx.proto REQUIRED)
set(onnx_out ${CMAKE_BINARY_DIR}/generated/onnx)
file(READ ${ONNX_PROTO_DIR}/onnx/onnx.proto onnx_proto)
string(REGEX REPLACE "option optimize_for = LITE_RUNTIME;" "" onnx_proto "${onnx_proto}")
file(CONFIGURE OUTPUT ${onnx_out}/onnx/onnx.proto CONTENT "${onnx_proto}" @ONLY)
add_custom_command(OUTPUT ${onnx_out}/onnx/onnx.pb.cc ${onnx_out}/onnx/onnx.pb.h
  COMMAND protobuf::protoc --proto_path=${onnx_out} --cpp_out=${onnx_out} onnx/onnx.proto
  DEPENDS ${onnx_out}/onnx/onnx.proto)
add_library(warploom_onnx_proto STATIC ${onnx_out}/onnx/onnx.pb.cc)
target_include_directories(warploom_onnx_proto SYSTEM PUBLIC ${onnx_out})
target_link_libraries(warploom_onnx_proto PUBLIC protobuf::libprotobuf ${ZLIB_LIBRARY})

# device/ as text inside the executable: emitted kernels include these headers, and a bundle carries them along.
file(GLOB_RECURSE device_headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/device ${CMAKE_SOURCE_DIR}/device/*.h)
set(device_embed ${CMAKE_BINARY_DIR}/generated/device_headers.cpp)
list(TRANSFORM device_headers PREPEND ${CMAKE_SOURCE_DIR}/device/ OUTPUT_VARIABLE device_header_files)
add_custom_command(OUTPUT ${device_embed}
  COMMAND ${CMAKE_COMMAND} -DOUT=${device_embed} -DROOT=${CMAKE_SOURCE_DIR}/device "-DFILES=${device_headers}"
          -P ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
  DEPENDS ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake ${device_header_files} VERBATIM)
add_custom_target(warploom_device_embed_inputs DEPENDS ${device_embed})
add_library(warploom_device_headers STATIC ${device_embed})
target_include_directories(warploom_device_headers PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/device)
