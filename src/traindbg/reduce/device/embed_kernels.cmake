# Writes OUTPUT, a .cc with the text of the kernels for the compiler that the training's machine has.
file(READ "${CHUNK}" chunk)
file(READ "${KERNELS}" kernels)
string(REPLACE "#pragma once" "" chunk "${chunk}")
string(CONCAT text "// Generated from chunk.h and kernels.cu.\n#include \"traindbg/reduce/device/cuda.h\"\n\n"
       "namespace traindbg::reduce::device {\n\nconst char* const kKernelSource = R\"source(" "${chunk}" "${kernels}"
       ")source\";\n\n}  // namespace traindbg::reduce::device\n")
file(WRITE "${OUTPUT}" "${text}")
