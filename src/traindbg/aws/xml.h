// The little of XML that S3's answers consist of: elements with text, entities, no use of attributes.
//
// `scan_xml` walks a document and tells every element's text with the path to it: "ListBucketResult/
// Contents/Key". A document type, a processing instruction other than the declaration, or nesting deeper
// than 16 is refused: S3 sends none of them, and they are how XML is abused.
//
// Thread-safety: free functions. Errors: kDataLoss, for anything that is cut off or not well-formed.
// Cost: one pass; memory for the path and one text.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"

namespace traindbg::aws {

struct XmlEvent {
    std::string_view path;  // of names, joined by "/", without the root's namespace
    bool is_begin = false;  // the element begins; otherwise it ends, and `text` is all it held itself
    std::string_view text;
};

[[nodiscard]] base::Status scan_xml(std::string_view document,
                                    const std::function<void(const XmlEvent&)>& visit);

[[nodiscard]] std::string xml_escape(std::string_view text);

}  // namespace traindbg::aws
