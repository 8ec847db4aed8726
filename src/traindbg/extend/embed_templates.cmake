# cmake -DOUTPUT= -DTEMPLATES= -DINTERFACE= -P embed_templates.cmake
# Writes a .cc with the files of TEMPLATES and the header INTERFACE as raw string literals.
set(source "// Made by embed_templates.cmake; do not edit.\n#include \"traindbg/extend/scaffold.h\"\n\n")
string(APPEND source "namespace traindbg::extend {\n\nstd::span<const Template> templates() noexcept {\n")
string(APPEND source "    static constexpr Template kTemplates[] = {\n")

function(embed path text)
    string(FIND "${text}" ")traindbg\"" position)
    if(NOT position EQUAL -1)
        message(FATAL_ERROR "${path} holds the mark that ends the literal")
    endif()
    set(source "${source}{\"${path}\", R\"traindbg(${text})traindbg\"},\n" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE "${TEMPLATES}" "${TEMPLATES}/*")
list(SORT files)
foreach(path IN LISTS files)
    file(READ "${TEMPLATES}/${path}" text)
    # The suffix keeps compilers and formatters away.
    string(REGEX REPLACE "\\.in$" "" name "${path}")
    embed("${name}" "${text}")
endforeach()
file(READ "${INTERFACE}" text)
embed("cpp/include/traindbg/plugin.h" "${text}")
string(APPEND source "    };\n    return kTemplates;\n}\n\n}  // namespace traindbg::extend\n")
file(WRITE "${OUTPUT}" "${source}")
