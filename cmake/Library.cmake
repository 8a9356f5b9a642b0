# libwarploom: the C interface of include/warploom/warploom.h, and what `cmake --install` puts
# where. The installed tree can be moved:
#
#   cmake --install build/release --prefix ~/warploom      bin/warploom, lib/libwarploom.so,
#                                                          include/warploom, lib/cmake/Warploom
#   find_package(Warploom REQUIRED)                        with -DCMAKE_PREFIX_PATH=~/warploom
#   target_link_libraries(app PRIVATE Warploom::warploom)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

function(warploom_library)
  target_compile_definitions(warploom_api PRIVATE WARPLOOM_BUILD
    WARPLOOM_VERSION="${PROJECT_VERSION}")
  add_library(warploom_shared SHARED $<TARGET_OBJECTS:warploom_api>)
  set(names ${CMAKE_BINARY_DIR}/generated/warploom.map)
  file(CONFIGURE OUTPUT ${names} CONTENT "{ global: warploom_*; local: *; };\n")
  set_target_properties(warploom_shared PROPERTIES OUTPUT_NAME warploom EXPORT_NAME warploom
    VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR})
  target_include_directories(warploom_shared INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(warploom_shared PRIVATE $<BUILD_INTERFACE:warploom_verify>)
  # As in the executable the C++ runtime is linked in: the program that loads this has its own.
  target_link_options(warploom_shared PRIVATE -Wl,--version-script=${names})
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_link_options(warploom_shared PRIVATE -static-libstdc++ -static-libgcc)
  endif()

  set_target_properties(warploom PROPERTIES EXPORT_NAME program)
  set(where ${CMAKE_INSTALL_LIBDIR}/cmake/Warploom)
  install(TARGETS warploom warploom_shared EXPORT WarploomTargets)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/warploom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT WarploomTargets NAMESPACE Warploom:: DESTINATION ${where} FILE
    WarploomConfig.cmake)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/WarploomConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/generated/WarploomConfigVersion.cmake DESTINATION ${where})
endfunction()
