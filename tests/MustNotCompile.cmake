# tests/must_not_compile/*.cpp: each file must be rejected, and the first error that the compiler prints must match the
# file's line `// expect: REGEX`: who makes the mistake reads no further.
#
# Run as a script (cmake -P) with COMPILER, INCLUDE, SNIPPET and EXPECTATION it checks one file.

if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(COMMAND "${COMPILER}" -std=c++20 -fsyntax-only -fdiagnostics-color=never "-I${INCLUDE}" "${SNIPPET}"
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result EQUAL 0)
    message(FATAL_ERROR "${SNIPPET} compiles")
  endif()
  string(REGEX MATCH "[^\n]*error: [^\n]*" first "${output}")
  if(NOT first MATCHES "${EXPECTATION}")
    message(FATAL_ERROR "the first error is\n  ${first}\nwhich does not match\n  ${EXPECTATION}")
  endif()
  return()
endif()

file(GLOB snippets CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/must_not_compile/*.cpp")
foreach(snippet IN LISTS snippets)
  get_filename_component(name "${snippet}" NAME_WE)
  file(STRINGS "${snippet}" expectation REGEX "^// expect: ")
  string(REGEX REPLACE "^// expect: " "" expectation "${expectation}")
  if(NOT expectation)
    message(FATAL_ERROR "${snippet} has no line `// expect: REGEX`")
  endif()
  add_test(NAME "must not compile: ${name}"
           COMMAND "${CMAKE_COMMAND}" "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DINCLUDE=${PROJECT_SOURCE_DIR}/include"
                   "-DSNIPPET=${snippet}" "-DEXPECTATION=${expectation}" -P "${CMAKE_CURRENT_LIST_FILE}")
  set_tests_properties("must not compile: ${name}" PROPERTIES TIMEOUT 120)
endforeach()
