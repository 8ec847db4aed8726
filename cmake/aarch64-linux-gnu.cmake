# For a 64-bit ARM machine, on a Debian or Ubuntu of another architecture: with its cross compiler, and programs
# that are run by qemu. Headers of libraries that are nothing but headers are those of this machine.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Nothing is loaded at run time that would have to be there for ARM.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# Found in this machine's own library folder, of which only the headers are used.
set(fmt_DIR "/usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake/fmt")
# There is no library of GTest for ARM here: it is built of the sources that libgtest-dev comes with.
set(TRAINDBG_GTEST_SOURCE /usr/src/googletest/googletest)
