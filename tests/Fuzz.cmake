# tests/fuzz/<name>_fuzz.cpp define LLVMFuzzerTestOneInput. Always built as programs that replay tests/fuzz/corpus/<name>/;
# with DFLOW_LIBFUZZER also as libFuzzer programs, on the header-only library so that only what they use is compiled.

file(GLOB fuzz_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/*_fuzz.cpp")
foreach(source IN LISTS fuzz_sources)
  get_filename_component(target "${source}" NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name "${target}")
  if(DFLOW_LIBFUZZER)
    add_executable(${target} "${source}")
    target_link_libraries(${target} PRIVATE dflow::header_only)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${target}_replay "${source}" fuzz_replay.cpp)
    target_link_libraries(${target}_replay PRIVATE ${DFLOW_LIBRARY})
    add_test(NAME "fuzz replay: ${name}" COMMAND ${target}_replay "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}")
    set_tests_properties("fuzz replay: ${name}" PROPERTIES TIMEOUT 300)
  endif()
endforeach()
