# cmake -DOUTPUT= -DTEMPLATE= -DSTYLE= -DSCRIPTS= -P embed.cmake
# Writes a .cc with the texts as raw string literals and their SHA-256. The scripts become one, inside
# a function, so that none of their names is global.
set(source "// Made by embed.cmake; do not edit.\n#include \"traindbg/report/assets.h\"\n\n")
string(APPEND source "namespace traindbg::report {\n")

function(embed name text)
    string(FIND "${text}" ")traindbg\"" position)
    if(NOT position EQUAL -1)
        message(FATAL_ERROR "${name} holds the mark that ends the literal")
    endif()
    string(SHA256 hash "${text}")
    set(source "${source}
const Asset& ${name}() noexcept {
    static constexpr Asset kAsset{R\"traindbg(${text})traindbg\", \"${hash}\"};
    return kAsset;
}
" PARENT_SCOPE)
endfunction()

file(READ "${TEMPLATE}" template)
file(READ "${STYLE}" style)
set(script "(() => {\n\"use strict\";\n")
foreach(path IN LISTS SCRIPTS)
    file(READ "${path}" part)
    string(APPEND script "${part}")
endforeach()
string(APPEND script "})();\n")

embed(page_template "${template}")
embed(page_style "${style}")
embed(page_script "${script}")
string(APPEND source "\n}  // namespace traindbg::report\n")
file(WRITE "${OUTPUT}" "${source}")
