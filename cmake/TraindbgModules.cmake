# One static library per module of src/traindbg, linked as src/traindbg/layers.txt says.

set(TRAINDBG_LAYERS_FILE "${PROJECT_SOURCE_DIR}/src/traindbg/layers.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${TRAINDBG_LAYERS_FILE}")

# Sets `out_modules` to all modules and <module>_DEPS for each.
function(traindbg_read_layers out_modules)
    file(STRINGS "${TRAINDBG_LAYERS_FILE}" lines REGEX "^[a-z0-9]+:")
    set(modules "")
    foreach(line IN LISTS lines)
        string(REGEX MATCH "^([a-z0-9]+):[ ]*(.*)$" _ "${line}")
        set(module "${CMAKE_MATCH_1}")
        separate_arguments(dependencies UNIX_COMMAND "${CMAKE_MATCH_2}")
        list(APPEND modules "${module}")
        set(${module}_DEPS "${dependencies}" PARENT_SCOPE)
    endforeach()
    set(${out_modules} "${modules}" PARENT_SCOPE)
endfunction()

# Modules whose code runs at every step of a training: each file is compiled by itself, as it is measured.
set(TRAINDBG_ON_THE_HOT_PATH base tensor model reduce storage format write capture)

# Has `target` compiled in batches of files where it is built to be shipped: headers are read once for a dozen of them.
function(traindbg_compile_in_batches target)
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    endif()
endfunction()

# traindbg_module(base): libtraindbg_base.a of all src/traindbg/base/**.cc but main.cc, as
# traindbg::base. A module's own CMakeLists.txt, where there is one, may add to the target.
function(traindbg_module module)
    set(directory "${PROJECT_SOURCE_DIR}/src/traindbg/${module}")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${directory}/*.cc")
    list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
    if(NOT sources)
        return()
    endif()
    add_library(traindbg_${module} STATIC ${sources})
    add_library(traindbg::${module} ALIAS traindbg_${module})
    if(NOT module IN_LIST TRAINDBG_ON_THE_HOT_PATH)
        traindbg_compile_in_batches(traindbg_${module})
    endif()
    target_include_directories(traindbg_${module} PUBLIC "${PROJECT_SOURCE_DIR}/src"
                                                         "${PROJECT_SOURCE_DIR}/include")
    target_link_libraries(traindbg_${module} PUBLIC traindbg_compile_options)
    target_link_libraries(traindbg_${module} PRIVATE nlohmann_json::nlohmann_json)
    traindbg_use_precompiled(traindbg_${module})
    if(module STREQUAL "base")  # for format.h; the library itself is compiled into format.cc
        target_include_directories(traindbg_base PUBLIC
            $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
    endif()
    foreach(dependency IN LISTS ${module}_DEPS)
        target_link_libraries(traindbg_${module} PUBLIC traindbg_${dependency})
    endforeach()
    if(EXISTS "${directory}/CMakeLists.txt")
        add_subdirectory("${directory}")
    endif()
endfunction()

# Test sources with names that others of their module have too: a unity build compiles each by itself.
set(TRAINDBG_TESTS_ALONE
    actions/metrics_test.cc actions/notifier_test.cc capture/capture_session_test.cc capture/plan_changes_test.cc
    engine/merged_verdict_test.cc format/tfrecord_test.cc model/json_test.cc read/run_test.cc
    read/sealed_run_test.cc reduce/histogram_test.cc reduce/reducer_test.cc report/verdict_forms_test.cc
    settings/settings_test.cc write/run_writer_test.cc)
list(TRANSFORM TRAINDBG_TESTS_ALONE PREPEND "${PROJECT_SOURCE_DIR}/tests/cpp/")
foreach(file IN LISTS TRAINDBG_TESTS_ALONE)
    if(NOT EXISTS "${file}")
        message(FATAL_ERROR "TRAINDBG_TESTS_ALONE names ${file}, which is not there")
    endif()
endforeach()
set_source_files_properties(${TRAINDBG_TESTS_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# One test program per module, of all tests/cpp/<module>/*_test.cc.
function(traindbg_module_tests module)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cpp/${module}/*.cc")
    if(NOT sources OR NOT TARGET traindbg_${module})
        return()
    endif()
    add_executable(${module}_test ${sources})
    traindbg_compile_in_batches(${module}_test)
    traindbg_use_precompiled(${module}_test)
    target_include_directories(${module}_test PRIVATE "${PROJECT_SOURCE_DIR}/tests/cpp")
    # The code under test is as fast as the build wants it; that of the tests need not be.
    target_compile_options(${module}_test PRIVATE $<$<CONFIG:Release>:-O1>)
    target_compile_definitions(${module}_test PRIVATE
                               TRAINDBG_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_link_libraries(${module}_test PRIVATE traindbg_${module} ${ARGN} GTest::gtest
                                                 GTest::gtest_main
                                                 nlohmann_json::nlohmann_json)
    gtest_discover_tests(${module}_test TEST_PREFIX "${module}." DISCOVERY_MODE PRE_TEST
                         DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300)
endfunction()
