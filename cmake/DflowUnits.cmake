# The units of the compiled library: each header of include/dflow/src/units/ is one.
#
# Most of the time of a unit goes into headers that all share, so units are compiled in batches. Batches are packed by the
# cost of a unit beyond the shared headers, up to DFLOW_BATCH_COST, so that none takes much longer than the others. DFLOW_UNITY_SOURCES=0 compiles each
# unit alone, which is quicker after a change to one.

# Seconds of CPU time at -O2 beyond the headers; a unit that is not named here costs 2. "alone" is never in a batch.
set(dflow_unit_costs
    core/autodiff=6 core/base=5 core/calls=15 core/core=5 core/graph=6 core/graph_def=4 core/op_import=3 core/passes=14
    core/plan=8 core/runtime=9 core/session=10 core/state=10 data/data=8 io/io=17 net/cluster=4 net/protocol=8
    net/server=12 net/simulation=4 net/sockets=6 trace/trace=8 train/fitting=9 train/layers=14 train/models=6
    train/replicas=11
    kernels/array=3 kernels/data_flow=8 kernels/parsing=4 kernels/reduction=4 kernels/state_updates=4 kernels/strings=4
    loops/elementwise_float=6 loops/elementwise_half=6 loops/elementwise_integer=6 loops/pool_integer=3 loops/scatter_integer=3
    # It names all kernels, so it must not see the templates that others instantiate.
    tables/kernels=alone
    # Eigen's templates take long, and have flags of their own.
    linalg/linalg=alone linalg/qr=alone linalg/self_adjoint_eig=alone linalg/solve_complex128=alone
    linalg/solve_complex64=alone linalg/solve_double=alone linalg/solve_float=alone linalg/solve_ls_complex=alone
    linalg/solve_ls_real=alone linalg/svd_complex=alone linalg/svd_real=alone linalg/svd_real_steps=alone)

# What runs once for a graph, or waits for files and tasks: compiled to be small, which makes a third less code of it.
set(dflow_small_units "^(io|trace|train)/|^core/(autodiff|calls|graph_def|json|op_import)$|^data/|^kernels/(checkpoint|io)$|\
^net/(cluster|server|simulation)$|^tables/kernels$")

# dflow_units(OUT FOLDER...): writes the sources for the units of the folders and lists them in OUT.
function(dflow_units out)
  set(units "")
  foreach(folder IN LISTS ARGN)
    file(GLOB headers RELATIVE "${PROJECT_SOURCE_DIR}/include/dflow/src/units" CONFIGURE_DEPENDS
         "${PROJECT_SOURCE_DIR}/include/dflow/src/units/${folder}/*.hpp")
    list(APPEND units ${headers})
  endforeach()
  list(TRANSFORM units REPLACE "\\.hpp$" "")

  # Names of each kind, the dearest first.
  set(batch_by_cost "")
  set(small_by_cost "")
  set(sources "")
  foreach(unit IN LISTS units)
    set(cost 2)
    foreach(entry IN LISTS dflow_unit_costs)
      if(entry MATCHES "^${unit}=(.*)$")
        set(cost ${CMAKE_MATCH_1})
      endif()
    endforeach()
    if(cost STREQUAL "alone" OR NOT DFLOW_UNITY_SOURCES)
      string(REPLACE "/" "_" name "${unit}")
      dflow_write_unit(sources "${name}" "${unit}")
    elseif(unit MATCHES "${dflow_small_units}")
      list(APPEND small_by_cost "${cost}:${unit}")
    else()
      list(APPEND batch_by_cost "${cost}:${unit}")
    endif()
  endforeach()
  string(REPLACE "/" "_" prefix "${ARGV1}")
  foreach(kind IN ITEMS batch small)
    dflow_pack(sources "${prefix}_${kind}" ${${kind}_by_cost})
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# dflow_pack(OUT PREFIX COST:UNIT...): puts each unit into the first batch with room for it.
function(dflow_pack out prefix)
  list(SORT ARGN COMPARE NATURAL ORDER DESCENDING)
  set(num_batches 0)
  foreach(entry IN LISTS ARGN)
    string(REGEX MATCH "^([0-9]+):(.*)$" matched "${entry}")
    set(cost ${CMAKE_MATCH_1})
    set(unit ${CMAKE_MATCH_2})
    set(batch 0)
    while(batch LESS num_batches)
      math(EXPR total "${cost_${batch}} + ${cost}")
      if(total LESS_EQUAL DFLOW_BATCH_COST)
        break()
      endif()
      math(EXPR batch "${batch} + 1")
    endwhile()
    if(batch EQUAL num_batches)
      set(cost_${batch} 0)
      set(units_${batch} "")
      math(EXPR num_batches "${num_batches} + 1")
    endif()
    math(EXPR cost_${batch} "${cost_${batch}} + ${cost}")
    list(APPEND units_${batch} "${unit}")
  endforeach()
  set(batch 0)
  while(batch LESS num_batches)
    dflow_write_unit(${out} "${prefix}_${batch}" ${units_${batch}})
    math(EXPR batch "${batch} + 1")
  endwhile()
  set(${out} ${${out}} PARENT_SCOPE)
endfunction()

# dflow_included(OUT HEADER...): the headers and all that they include, themselves or through others, below include/dflow/.
function(dflow_included out)
  set(all "")
  set(pending ${ARGN})
  while(pending)
    set(next "")
    foreach(header IN LISTS pending)
      if(DEFINED "reached_${header}")
        continue()
      endif()
      set("reached_${header}" TRUE)
      list(APPEND all "${header}")
      get_property(is_read GLOBAL PROPERTY "dflow_includes_of_${header}" SET)
      if(NOT is_read)
        file(STRINGS "${PROJECT_SOURCE_DIR}/include/dflow/${header}" includes REGEX "^#include <dflow/.*>")
        list(TRANSFORM includes REPLACE "^#include <dflow/(.*)>.*" "\\1")
        set_property(GLOBAL PROPERTY "dflow_includes_of_${header}" "${includes}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/dflow/${header}")
      endif()
      get_property(includes GLOBAL PROPERTY "dflow_includes_of_${header}")
      list(APPEND next ${includes})
    endforeach()
    set(pending ${next})
  endwhile()
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

# The headers whose declarations a shared library exports: public ones and what they include. Bodies are none, nor headers
# that need a library of others.
set(dflow_public_list "${PROJECT_SOURCE_DIR}/include/dflow/public_headers.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${dflow_public_list}")
file(STRINGS "${dflow_public_list}" dflow_exported_headers REGEX "^[a-z]")
list(FILTER dflow_exported_headers EXCLUDE REGEX "^src[/.]|^interop/|^net/asio\\.hpp|cuda")
dflow_included(dflow_exported_headers ${dflow_exported_headers})

# Writes a source of the library by that name which includes the units, if it is not there as it should be, and adds it to OUT.
# It begins with the exported headers among all that it includes, in one region of default visibility. A header's guard leaves
# it there, and where symbols are hidden by default (DflowExports.cmake), what is included later is.
function(dflow_write_unit out name)
  set(text "#define DFLOW_IN_LIBRARY\n#include <dflow/base/one_copy.hpp>\n")
  list(TRANSFORM ARGN PREPEND "src/units/" OUTPUT_VARIABLE headers)
  list(TRANSFORM headers APPEND ".hpp")
  dflow_included(included ${headers})
  string(APPEND text "#pragma GCC visibility push(default)\n")
  foreach(header IN LISTS dflow_exported_headers)
    if(header IN_LIST included)
      string(APPEND text "#include <dflow/${header}>\n")
    endif()
  endforeach()
  string(APPEND text "#pragma GCC visibility pop\n")
  foreach(header IN LISTS headers)
    string(APPEND text "#include <dflow/${header}>\n")
  endforeach()
  set(path "${PROJECT_BINARY_DIR}/units/${name}.cpp")
  file(CONFIGURE OUTPUT "${path}" CONTENT "${text}" @ONLY)
  if(ARGV2 MATCHES "${dflow_small_units}")
    set_source_files_properties("${path}" PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>")
  endif()
  set(${out} ${${out}} "${path}" PARENT_SCOPE)
endfunction()
