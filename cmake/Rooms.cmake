# A room is a folder src/NAME: every .cpp in it and its folders becomes the static library
# warploom_NAME. Its tests are tests/NAME/*.cpp.
set(WARPLOOM_ROOMS "" CACHE INTERNAL "")

add_library(warploom_flags INTERFACE)
set(gnu CXX_COMPILER_ID:GNU)
# So that ccache can look through the precompiled header.
target_compile_options(warploom_flags INTERFACE $<$<${gnu}>:-fpch-preprocess>
                       -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                       # False alarms of GCC 12 on std::string.
                       $<$<${gnu}>:-Wno-stringop-overflow> $<$<${gnu}>:-Wno-restrict>
                       -Wno-array-bounds
                       # What an initializer leaves out has its default.
                       -Wno-missing-field-initializers
                       $<$<BOOL:${WARPLOOM_WERROR}>:-Werror>)
target_include_directories(warploom_flags INTERFACE ${CMAKE_SOURCE_DIR}/src
  ${CMAKE_SOURCE_DIR}/include)

# One precompiled header for all: the standard library, fmt, JSON and the base room's vocabulary.
add_library(warploom_pch_holder STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)

# Where the program itself spends time: FP64 references, inputs, comparisons. Fully optimized
# whatever the preset; all else is compiled quickly. (Another optimization level than the
# precompiled header's, so without it.)
set(WARPLOOM_HOT base/dtype base/value_op graph/evaluate_elements graph/evaluate_products
  graph/evaluate_reductions graph/evaluator graph/matrix graph/pointwise graph/scalar_function
  graph/tensor_view search/policy/network verify/comparison verify/inputs verify/sums)
foreach(hot ${WARPLOOM_HOT})
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/${hot}.cpp PROPERTIES COMPILE_OPTIONS -O3
    SKIP_PRECOMPILE_HEADERS ON)
endforeach()

# Cells are written for x86-64: what is left out for this processor.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  set(WARPLOOM_ELSEWHERE "/verify/elsewhere/")
else()
  set(WARPLOOM_ELSEWHERE
    "/verify/(cell|cell_code|cell_process|cell_reads|traced|memory_reads|read_watch)\\.cpp$")
endif()

# What is copied into a cell (src/verify/cell_code.h): code that refers to nothing outside of it.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/verify/cell_code.cpp PROPERTIES
  SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-O2;-fno-sanitize=all;-fno-stack-protector;\
-fcf-protection=none;-fno-jump-tables;-fno-builtin;-fno-asynchronous-unwind-tables;\
-mno-avx;-mno-red-zone;$<$<CXX_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>")

function(warploom_room name)
  cmake_parse_arguments(ARG "" "" "USES;LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "${WARPLOOM_ELSEWHERE}")
  if(NOT sources)
    return()
  endif()
  add_library(warploom_${name} STATIC ${sources})
  target_link_libraries(warploom_${name} PUBLIC warploom_flags ${ARG_LINK})
  target_precompile_headers(warploom_${name} REUSE_FROM warploom_pch_holder)
  foreach(used ${ARG_USES})
    if(TARGET warploom_${used})
      target_link_libraries(warploom_${name} PUBLIC warploom_${used})
    endif()
  endforeach()
  set(WARPLOOM_ROOMS ${WARPLOOM_ROOMS} ${name} CACHE INTERNAL "")
endfunction()

# The emulated device interface as a library: loaded by emulated kernels, linked by the executable
# that runs them.
function(warploom_emulator)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/device/emulated/*.cpp)
  if(sources)
    add_library(warploom_emulator STATIC ${sources})
    target_include_directories(warploom_emulator PUBLIC ${CMAKE_SOURCE_DIR}/device/emulated
      ${CMAKE_SOURCE_DIR}/device/common)
    target_compile_options(warploom_emulator PRIVATE -O3)
    target_link_libraries(warploom_emulator PUBLIC Boost::context warploom_base)  # base holds fmt
    # Emulated kernels are loaded libraries that call back into the executable. Only namespace wl
    # is exported, so that a
    # library with a C++ runtime of its own never meets the one linked in here.
    target_link_options(warploom_emulator INTERFACE "-Wl,--export-dynamic-symbol=_ZN2wl*"
                        "-Wl,--export-dynamic-symbol=_ZNK2wl*"
                          "-Wl,--export-dynamic-symbol=_ZT*2wl*"
                        "-Wl,--export-dynamic-symbol=wl_*")
  endif()
endfunction()

function(warploom_executable)
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/src/cli/main.cpp)
    return()
  endif()
  add_executable(warploom ${CMAKE_SOURCE_DIR}/src/cli/main.cpp)
  target_link_libraries(warploom PRIVATE warploom_cli)
  # As the precompiled header was; -fPIE would refuse it.
  target_compile_options(warploom PRIVATE -fPIC)
  target_precompile_headers(warploom REUSE_FROM warploom_pch_holder)
  # What emulated kernels call is exported by name (warploom_emulator above); the C++ runtime that
  # is linked in here is not.
  set_target_properties(warploom PROPERTIES ENABLE_EXPORTS OFF)
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_link_options(warploom PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# What tests of all rooms share. Paths of this checkout are known to its paths.cpp alone, so that
# ccache serves all other objects of the tests to every checkout.
add_library(warploom_test_support STATIC EXCLUDE_FROM_ALL
  ${CMAKE_SOURCE_DIR}/tests/support/paths.cpp)
target_compile_definitions(warploom_test_support PRIVATE
  WARPLOOM_SOURCE_DIR="${CMAKE_SOURCE_DIR}" WARPLOOM_BINARY_DIR="${CMAKE_BINARY_DIR}")
target_include_directories(warploom_test_support INTERFACE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(warploom_test_support PRIVATE warploom_flags)

# A libcuda.so.1 without a GPU, for tests of what users are told (tests/support/pretend_driver).
function(warploom_pretend_driver)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/pretend_driver/*.cpp)
  add_library(warploom_pretend_driver SHARED EXCLUDE_FROM_ALL ${sources})
  target_include_directories(warploom_pretend_driver PRIVATE
    ${CMAKE_SOURCE_DIR}/tests/support/pretend_driver)
  target_link_libraries(warploom_pretend_driver PRIVATE warploom_flags
    nlohmann_json::nlohmann_json)
  set_target_properties(warploom_pretend_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/pretend_driver)
  target_compile_options(warploom_pretend_driver PRIVATE -Wno-unused-parameter -fno-gnu-unique)
  # Nothing of it meets the program's own symbols.
  target_link_options(warploom_pretend_driver PRIVATE -static-libstdc++ -static-libgcc
    -Wl,--exclude-libs,ALL -Wl,-Bsymbolic)
endfunction()

function(warploom_tests)
  warploom_pretend_driver()
  include(GoogleTest)
  add_library(warploom_fuzz INTERFACE)  # no room: random programs, graphs and bytes through several
  target_link_libraries(warploom_fuzz INTERFACE warploom_onnx warploom_search warploom_export)
  foreach(room ${WARPLOOM_ROOMS} emulator fuzz)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${room}/*.cpp)
    if(sources AND TARGET warploom_${room})
      add_executable(test_${room} ${sources})
      target_include_directories(test_${room} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
      target_link_libraries(test_${room} PRIVATE warploom_${room} warploom_base warploom_flags
        warploom_test_support GTest::gtest_main rapidcheck nlohmann_json::nlohmann_json)
      if(room STREQUAL "cli" AND TARGET warploom)
        # Its tests start the executable and install both.
        add_dependencies(test_${room} warploom warploom_shared warploom_pretend_driver)
      endif()
      if(room STREQUAL "synth")
        # Some of its tests go on to the source.
        target_link_libraries(test_${room} PRIVATE warploom_kernels)
      endif()
      if(room STREQUAL "kernels")
        target_link_libraries(test_${room} PRIVATE warploom_runtime)  # its tests run what it builds
      endif()
      target_compile_options(test_${room} PRIVATE -fPIC)
      target_precompile_headers(test_${room} REUSE_FROM warploom_pch_holder)
      gtest_discover_tests(test_${room} TEST_PREFIX ${room}. DISCOVERY_TIMEOUT 60 PROPERTIES
        TIMEOUT 300)
    endif()
  endforeach()
endfunction()

# What bench/compiler/measure.py and bench/strict/agreement.py run: built on demand alone.
function(warploom_bench)
  add_executable(bench_compiler EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/compiler/measure.cpp)
  target_link_libraries(bench_compiler PRIVATE warploom_kernels warploom_runtime
    warploom_test_support)
  target_compile_options(bench_compiler PRIVATE -fPIC)
  target_precompile_headers(bench_compiler REUSE_FROM warploom_pch_holder)
  add_executable(bench_strict EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/strict/beside.cpp)
  target_link_libraries(bench_strict PRIVATE warploom_verify)
  target_compile_options(bench_strict PRIVATE -fPIC)
  target_link_options(bench_strict PRIVATE -rdynamic)
  target_precompile_headers(bench_strict REUSE_FROM warploom_pch_holder)
  add_executable(bench_cpu EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/cpu/beside.cpp)
  target_link_libraries(bench_cpu PRIVATE warploom_onnx warploom_verify)
  target_compile_options(bench_cpu PRIVATE -fPIC)
  target_link_options(bench_cpu PRIVATE -rdynamic)
  target_precompile_headers(bench_cpu REUSE_FROM warploom_pch_holder)
endfunction()

# What libFuzzer drives, one executable a reader: only with the preset `fuzz`, whose compiler has
# libFuzzer (docs/fuzzing.md).
function(warploom_fuzzers)
  add_custom_target(fuzzers)
  foreach(reader onnx_binary onnx_text tile_program archive plan kernel answer image)
    add_executable(fuzz_${reader} ${CMAKE_SOURCE_DIR}/tests/fuzz/readers/${reader}.cpp)
    target_link_libraries(fuzz_${reader} PRIVATE warploom_onnx warploom_tile warploom_archive
                          warploom_export)
    target_compile_options(fuzz_${reader} PRIVATE -fPIC)
    target_precompile_headers(fuzz_${reader} REUSE_FROM warploom_pch_holder)
    target_link_options(fuzz_${reader} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers fuzz_${reader})
  endforeach()
endfunction()
