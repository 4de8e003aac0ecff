# tests/must_not_compile/*.cpp: each file must be rejected, with a message that matches its line `// expect: REGEX`.

file(GLOB snippets CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/must_not_compile/*.cpp")
foreach(snippet IN LISTS snippets)
  get_filename_component(name "${snippet}" NAME_WE)
  file(STRINGS "${snippet}" expectation REGEX "^// expect: ")
  string(REGEX REPLACE "^// expect: " "" expectation "${expectation}")
  if(NOT expectation)
    message(FATAL_ERROR "${snippet} has no line `// expect: REGEX`")
  endif()
  add_test(NAME "must not compile: ${name}" COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only
                                                     "-I${PROJECT_SOURCE_DIR}/include" "${snippet}")
  set_tests_properties("must not compile: ${name}" PROPERTIES PASS_REGULAR_EXPRESSION "${expectation}" TIMEOUT 120)
endforeach()
