// Everything that the S3 client reads from a network or from somebody's home directory.
#include <cstdlib>
#include <string>
#include <string_view>

#include "traindbg/aws/credentials.h"
#include "traindbg/aws/ini_file.h"
#include "traindbg/aws/xml.h"
#include "traindbg/s3/s3_object_store.h"
#include "traindbg/storage/object_pieces.h"

using namespace traindbg;

namespace {

void check(bool holds) {
    if (!holds) std::abort();
}

void fuzz_list(std::string_view text) {
    const auto page = s3::internal::parse_list(text);
    if (!page.is_ok()) return;
    check(page->objects.size() * 9 <= text.size());  // "<Contents" each
    for (const storage::ObjectInfo& object : page->objects) {
        check(storage::check_key(object.key).is_ok());
        if (const auto piece = storage::parse_piece(object.key))
            check(storage::piece_name(piece->file, piece->index) == object.key);
    }
}

void fuzz_xml(std::string_view text) {
    std::size_t depth = 0;
    const auto status = aws::scan_xml(text, [&](const aws::XmlEvent& event) {
        if (event.is_begin) ++depth;
        else check(depth-- > 0);
        check(event.text.size() <= text.size());
    });
    check(!status.is_ok() || depth == 0);
    const s3::internal::ErrorAnswer error = s3::internal::parse_error(text);
    for (const char letter : error.region)  // it becomes part of a host's name
        check((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-');
}

void fuzz_ini(std::string_view text) {
    const auto file = aws::parse_ini(text, "file");
    if (!file.is_ok()) return;
    for (const auto& [title, section] : *file)
        for (const auto& [key, value] : section) {
            check(!key.empty());
            check(value.find('\n') == std::string::npos);
        }
}

void fuzz_credentials(std::string_view text) {
    const auto found = aws::internal::credentials_from_json(text, "source");
    if (!found.is_ok()) return;
    for (const std::string& word : {found->access_key, found->secret_key, found->session_token})
        for (const char letter : word) check(static_cast<unsigned char>(letter) > ' ');  // no second header
}

void fuzz_url(std::string_view text) {
    if (const auto url = s3::parse_s3_url(text); url.is_ok()) {
        check(url->bucket.size() >= 3 && url->bucket.size() <= 63);
        check(url->key.empty() || storage::check_key(url->key).is_ok());
    }
    std::string decoded;
    if (aws::percent_decode(text, decoded)) check(decoded.size() <= text.size());
    check(aws::percent_decode(aws::percent_encode(text, false), decoded) && decoded == text);
    static_cast<void>(aws::internal::is_trusted_container_url(std::string(text)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 5) {
        case 0: fuzz_list(text); break;
        case 1: fuzz_xml(text); break;
        case 2: fuzz_ini(text); break;
        case 3: fuzz_credentials(text); break;
        default: fuzz_url(text); break;
    }
    return 0;
}
