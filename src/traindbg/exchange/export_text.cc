// CSV as RFC 4180 has it (CRLF, quotes where needed, a header), and JSON lines.
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/exchange/export_format.h"
#include "traindbg/exchange/output_file.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"
#include "traindbg/tables/table_reader.h"

namespace traindbg::exchange {
namespace {

using base::Result;
using tables::Batch;
using tables::Column;
using tables::Type;

// Shortest text that reads back as the same number.
template <typename Number>
void append_number(std::string& out, Number value) {
    std::array<char, 40> digits;
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    out.append(digits.data(), error == std::errc() ? end : digits.data());
}

// UTC with nanoseconds: "2026-11-20T21:04:05.000000001Z".
void append_time(std::string& out, std::int64_t nanos) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    std::int64_t rest = nanos % kSecond;
    if (rest < 0) rest += kSecond;
    std::string text = base::iso_time(nanos - rest);
    if (!text.empty() && text.back() == 'Z') text.pop_back();
    out += base::format("{}.{:09}Z", text, rest);
}

std::string json_text(std::string_view text) {
    return model::Json(text).dump(-1, ' ', false, model::Json::error_handler_t::replace);
}

std::string list_text(const Column& column, std::size_t row) {
    std::string out = "[";
    for (std::int32_t i = column.offsets[row]; i < column.offsets[row + 1]; ++i) {
        if (out.size() > 1) out += ", ";
        const auto at = static_cast<std::size_t>(i);
        if (column.type == Type::kInt64List) append_number(out, column.at<std::int64_t>(at));
        else out += json_text(column.texts.at(at));
    }
    return out + "]";
}

// What is the same in both formats: whole numbers.
bool append_whole(std::string& out, const Column& column, std::size_t row) {
    switch (column.type) {
        case Type::kUInt32: append_number(out, column.at<std::uint32_t>(row)); return true;
        case Type::kUInt64: append_number(out, column.at<std::uint64_t>(row)); return true;
        case Type::kInt32: append_number(out, column.at<std::int32_t>(row)); return true;
        case Type::kInt64: append_number(out, column.at<std::int64_t>(row)); return true;
        default: return false;
    }
}

class Csv {
  public:
    static std::string header(const std::vector<tables::Field>& fields) {
        std::string out;
        for (const tables::Field& field : fields) (out += out.empty() ? "" : ",") += field.name;
        return out + "\r\n";
    }
    static void row(std::string& out, const std::vector<tables::Field>&, const Batch& batch,
                    std::size_t row) {
        for (std::size_t i = 0; i < batch.columns.size(); ++i) {
            if (i > 0) out += ',';
            cell(out, batch.columns[i], row);
        }
        out += "\r\n";
    }

  private:
    static void cell(std::string& out, const Column& column, std::size_t row) {
        if (column.is_null(row) || append_whole(out, column, row)) return;
        switch (column.type) {
            case Type::kDouble: {  // also nan, inf, -inf; a NaN's sign means nothing
                const auto value = column.at<double>(row);
                append_number(out, std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value);
                return;
            }
            case Type::kTime: append_time(out, column.at<std::int64_t>(row)); return;
            case Type::kInt64List:
            case Type::kTextList: quote(out, list_text(column, row)); return;
            default: quote(out, column.text_at(row)); return;
        }
    }
    static void quote(std::string& out, std::string_view text) {
        if (text.find_first_of("\",\r\n") == std::string_view::npos) {
            out += text;
            return;
        }
        out += '"';
        for (const char character : text) {
            if (character == '"') out += '"';
            out += character;
        }
        out += '"';
    }
};

class JsonLines {
  public:
    static std::string header(const std::vector<tables::Field>&) { return {}; }
    static void row(std::string& out, const std::vector<tables::Field>& fields, const Batch& batch,
                    std::size_t row) {
        for (std::size_t i = 0; i < batch.columns.size(); ++i) {
            out += i == 0 ? "{\"" : ", \"";
            out += fields[i].name;
            out += "\": ";
            cell(out, batch.columns[i], row);
        }
        out += "}\n";
    }

  private:
    static void cell(std::string& out, const Column& column, std::size_t row) {
        if (column.is_null(row)) {
            out += "null";
            return;
        }
        if (append_whole(out, column, row)) return;
        switch (column.type) {
            case Type::kDouble: {
                const auto value = column.at<double>(row);
                if (!std::isfinite(value)) out += '"';  // JSON has no such numbers
                if (std::isnan(value)) out += "nan";
                else append_number(out, value);
                if (!std::isfinite(value)) out += '"';
                return;
            }
            case Type::kTime:
                out += '"';
                append_time(out, column.at<std::int64_t>(row));
                out += '"';
                return;
            case Type::kInt64List:
            case Type::kTextList: out += list_text(column, row); return;
            default: out += json_text(column.text_at(row)); return;
        }
    }
};

template <typename Format>
Result<ExportResult> export_text(const ExportRequest& request) {
    TRAINDBG_ASSIGN_OR_RETURN(const tables::TableKind kind, tables::parse_table(request.tables.front()));
    std::uint64_t total = 0;
    {
        TRAINDBG_ASSIGN_OR_RETURN(const auto run, read::Run::open(request.run, *request.files));
        total = run->totals().steps;
    }
    TRAINDBG_ASSIGN_OR_RETURN(
        const auto reader, tables::TableReader::open(request.run, kind, request.selection, *request.files));
    TRAINDBG_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(request.to, request.overwrite));
    TRAINDBG_RETURN_IF_ERROR(file.write(Format::header(reader->fields())));
    ExportResult result;
    std::string line;
    while (true) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::optional<Batch> batch, reader->next());
        if (!batch) break;
        for (std::size_t row = 0; row < batch->rows; ++row) {
            line.clear();
            Format::row(line, reader->fields(), *batch, row);
            TRAINDBG_RETURN_IF_ERROR(file.write(line));
        }
        result.items += batch->rows;
        request.tell(reader->steps_read(), total);
    }
    TRAINDBG_RETURN_IF_ERROR(file.commit());
    result.bytes = file.size();
    result.files = 1;
    result.add_damage(reader->damage());
    return result;
}

}  // namespace

Result<ExportResult> export_csv(const ExportRequest& request) { return export_text<Csv>(request); }
Result<ExportResult> export_json_lines(const ExportRequest& request) {
    return export_text<JsonLines>(request);
}

}  // namespace traindbg::exchange
