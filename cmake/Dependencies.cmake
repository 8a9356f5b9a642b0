# Third-party code, all from Debian 12; docs/dependencies.md says why each was chosen.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)
find_path(MUSTACHE_DIR kainjow/mustache.hpp REQUIRED)  # in the compiler's own folder of headers
# Static wherever Debian has the archive, in every build: the executable then needs glibc alone, and
# what is tested is what is given away.
set(Boost_USE_STATIC_LIBS ON)
set(Protobuf_USE_STATIC_LIBS ON)
find_library(SQLite3_LIBRARY NAMES libsqlite3.a sqlite3)
find_package(SQLite3 REQUIRED)
find_library(ZLIB_LIBRARY NAMES libz.a z)
# Debian has these as shared libraries alone: src/verify/disassembler.cpp carries them whole.
find_path(ZYDIS_DIR Zydis/Zydis.h REQUIRED)
find_library(ZYDIS_LIBRARY NAMES libZydis.so REQUIRED)
find_library(ZYCORE_LIBRARY NAMES libZycore.so REQUIRED)
find_package(Boost REQUIRED COMPONENTS context)
find_package(Eigen3 REQUIRED NO_MODULE)  # headers alone
find_package(Protobuf REQUIRED)
if(WARPLOOM_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()

target_precompile_headers(warploom_pch_holder PRIVATE
  <algorithm> <array> <cstdint> <cmath> <functional> <map> <memory> <optional> <set> <span>
    <string> <string_view>
  <utility> <variant> <vector> <tl/expected.hpp> <fmt/format.h> <nlohmann/json.hpp>)
target_link_libraries(warploom_pch_holder PRIVATE warploom_flags nlohmann_json::nlohmann_json)

# onnx.proto as Debian ships it, compiled here so that the static protobuf can carry it into one
# executable. The lite runtime that it asks for cannot read the text form, so that option is left
# out. Fields that newer versions of the format have, and whose numbers never change, are added:
# what a function's attributes default to, which of several functions of one name is called, and
# notes that texts of newer models hold.
find_path(ONNX_PROTO_DIR onnx/onnx.proto REQUIRED)
set(onnx_out ${CMAKE_BINARY_DIR}/generated/onnx)
file(READ ${ONNX_PROTO_DIR}/onnx/onnx.proto onnx_proto)
string(REGEX REPLACE "option optimize_for = LITE_RUNTIME;" "" onnx_proto "${onnx_proto}")
foreach(newer
    "FunctionProto|repeated AttributeProto attribute_proto = 11"
    "FunctionProto|repeated ValueInfoProto value_info = 12"
    "FunctionProto|optional string overload = 13"
    "FunctionProto|repeated StringStringEntryProto metadata_props = 14"
    "NodeProto|optional string overload = 8"
    "NodeProto|repeated StringStringEntryProto metadata_props = 9"
    "ValueInfoProto|repeated StringStringEntryProto metadata_props = 4"
    "GraphProto|repeated StringStringEntryProto metadata_props = 16"
    "TensorProto|repeated StringStringEntryProto metadata_props = 16")
  string(REGEX MATCH "^([A-Za-z]+)\\|(.* ([a-z_]+) = .*)$" _ "${newer}")
  set(message ${CMAKE_MATCH_1})
  set(field ${CMAKE_MATCH_2})
  set(name ${CMAKE_MATCH_3})
  string(REGEX MATCH "message ${message} {[^}]*}" present "${onnx_proto}")
  if(NOT present MATCHES " ${name} = ")
    set(head "message ${message} {")
    string(REPLACE "${head}" "${head}\n  ${field};" onnx_proto "${onnx_proto}")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${onnx_out}/onnx/onnx.proto CONTENT "${onnx_proto}" @ONLY)
add_custom_command(OUTPUT ${onnx_out}/onnx/onnx.pb.cc ${onnx_out}/onnx/onnx.pb.h
  COMMAND protobuf::protoc --proto_path=${onnx_out} --cpp_out=${onnx_out} onnx/onnx.proto
  DEPENDS ${onnx_out}/onnx/onnx.proto)
add_library(warploom_onnx_proto STATIC ${onnx_out}/onnx/onnx.pb.cc)
target_include_directories(warploom_onnx_proto SYSTEM PUBLIC ${onnx_out})
target_link_libraries(warploom_onnx_proto PUBLIC protobuf::libprotobuf ${ZLIB_LIBRARY})

# The report's script and the parts of D3 that it calls as one text, as small as it goes.
find_program(ESBUILD esbuild REQUIRED)
find_path(D3_DIR d3-scale/src/index.js HINTS /usr/share/nodejs REQUIRED)
set(made ${CMAKE_BINARY_DIR}/generated/made)
set(report_js report/report.js)
file(GLOB report_parts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/resources/report/script/*.js)
add_custom_command(OUTPUT ${made}/${report_js}
  COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=${D3_DIR} ${ESBUILD}
    ${CMAKE_SOURCE_DIR}/resources/${report_js} --bundle --minify
          --format=iife --target=es2020 --log-level=warning --outfile=${made}/${report_js}
  DEPENDS ${CMAKE_SOURCE_DIR}/resources/${report_js} ${report_parts} VERBATIM)

# FUNCTION() of base/rendered.h: the files of FOLDER that match PATTERN, as text inside the
# executable; what is MADE of some of them stands in their place.
add_library(warploom_embedded STATIC)
target_include_directories(warploom_embedded PUBLIC ${CMAKE_SOURCE_DIR}/src
  ${CMAKE_SOURCE_DIR}/device)
function(warploom_embed function folder pattern)
  set(root ${CMAKE_SOURCE_DIR}/${folder})
  set(out ${CMAKE_BINARY_DIR}/generated/${function}.cpp)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${root} ${root}/${pattern})
  list(FILTER files EXCLUDE REGEX "^report/script/")  # parts of ${MADE}
  list(TRANSFORM files PREPEND ${root}/ OUTPUT_VARIABLE paths)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DFUNCTION=${function} -DROOT=${root} -DMADE=${made}
      "-DFILES=${files}"
            -P ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake ${paths} ${ARGN} VERBATIM)
  target_sources(warploom_embedded PRIVATE ${out})
endfunction()
warploom_embed(device_headers device *.h)
warploom_embed(resources resources * ${made}/${report_js})

set_source_files_properties(${CMAKE_SOURCE_DIR}/src/verify/disassembler.cpp PROPERTIES
  COMPILE_DEFINITIONS
    "WARPLOOM_ZYDIS_LIBRARY=\"${ZYDIS_LIBRARY}\";WARPLOOM_ZYCORE_LIBRARY=\"${ZYCORE_LIBRARY}\""
  OBJECT_DEPENDS "${ZYDIS_LIBRARY};${ZYCORE_LIBRARY}" SKIP_PRECOMPILE_HEADERS ON)
