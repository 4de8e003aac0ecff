# Finds what is installed; nothing is downloaded. Required: threads, Eigen, cereal with RapidJSON, which Debian's package
# depends on and the others hold, Asio. Optional: oneDNN, zlib, OpenSSL; CUDA and cuDNN are looked for in DflowCuda.cmake.

find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(cereal REQUIRED)
find_package(asio 1.18 REQUIRED)

# Finds `package`, of at least the version that may follow, as the option DFLOW_WITH_<component> says; sets
# DFLOW_HAS_<component>.
function(dflow_find_component component package)
  set(found FALSE)
  if(DFLOW_WITH_${component})
    if(DFLOW_WITH_${component} STREQUAL "AUTO")
      find_package(${package} ${ARGN} QUIET)
    else()
      find_package(${package} ${ARGN} REQUIRED)
    endif()
    if(${package}_FOUND)
      set(found TRUE)
    endif()
  endif()
  set(DFLOW_HAS_${component} ${found} PARENT_SCOPE)
endfunction()

dflow_find_component(ONEDNN dnnl)
dflow_find_component(ZLIB ZLIB)
dflow_find_component(OPENSSL OpenSSL)
