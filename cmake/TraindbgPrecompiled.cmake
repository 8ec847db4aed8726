# With TRAINDBG_PRECOMPILE: headers that nearly all files include, parsed once for all modules and tests
# of a build. A file that forgets to include one of them still compiles here; it does not in the builds without.

if(TRAINDBG_PRECOMPILE)
    if(TRAINDBG_PYTHON)
        message(FATAL_ERROR "TRAINDBG_PRECOMPILE makes no position-independent code, which TRAINDBG_PYTHON needs")
    endif()
    set(headers <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <filesystem>
        <fstream> <functional> <limits> <map> <memory> <mutex> <optional> <set> <span> <sstream> <string>
        <string_view> <thread> <unordered_map> <unordered_set> <utility> <variant> <vector> <nlohmann/json.hpp>)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/precompiled.cc" CONTENT "")
    add_library(traindbg_precompiled OBJECT "${CMAKE_BINARY_DIR}/precompiled.cc")
    target_link_libraries(traindbg_precompiled PRIVATE traindbg_compile_options nlohmann_json::nlohmann_json)
    if(TRAINDBG_TESTS)
        find_package(GTest REQUIRED)
        list(APPEND headers <gtest/gtest.h>)
        target_link_libraries(traindbg_precompiled PRIVATE GTest::gtest)
    endif()
    target_precompile_headers(traindbg_precompiled PRIVATE ${headers})
    # Without it no two of them are the same, and ccache would find nothing that was compiled with one.
    target_compile_options(traindbg_precompiled PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
endif()

# Has `target` use them.
function(traindbg_use_precompiled target)
    if(TRAINDBG_PRECOMPILE)
        target_precompile_headers(${target} REUSE_FROM traindbg_precompiled)
    endif()
endfunction()
