# tests/must_not_compile/*.cpp: each file must be rejected, and the first error that the compiler prints must match the
# file's line `// expect: REGEX`: who makes the mistake reads no further. A line `// flags: FLAG` gives the compiler one more
# flag; the file is skipped where the compiler does not know it.
#
# Run as a script (cmake -P) with COMPILER, FLAG, INCLUDE, SNIPPET and EXPECTATION it checks one file.

if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(COMMAND "${COMPILER}" ${FLAG} -std=c++20 -fsyntax-only -fdiagnostics-color=never "-I${INCLUDE}" "${SNIPPET}"
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
  file(STRINGS "${snippet}" flag REGEX "^// flags: ")
  string(REGEX REPLACE "^// flags: " "" flag "${flag}")
  if(flag)
    include(CheckCXXCompilerFlag)
    string(MAKE_C_IDENTIFIER "DFLOW_COMPILER_KNOWS${flag}" known)
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # programs may not link
    check_cxx_compiler_flag(${flag} ${known})
    if(NOT ${known})
      continue()
    endif()
  endif()
  add_test(NAME "must not compile: ${name}"
           COMMAND "${CMAKE_COMMAND}" "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DFLAG=${flag}" "-DINCLUDE=${PROJECT_SOURCE_DIR}/include"
                   "-DSNIPPET=${snippet}" "-DEXPECTATION=${expectation}" -P "${CMAKE_CURRENT_LIST_FILE}")
  set_tests_properties("must not compile: ${name}" PROPERTIES TIMEOUT 120)
endforeach()
