// Typed columns in the memory layout of Apache Arrow, so that they are handed over without a copy.
//
// Ownership: a batch owns its values and shares its dictionaries with other batches of the same reader.
// Thread-safety: plain values; a batch that was handed out is never changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace traindbg::tables {

enum class Type : std::uint8_t {
    kUInt32,
    kUInt64,
    kInt32,
    kInt64,
    kDouble,
    kTime,       // nanoseconds since 1970, UTC
    kText,       // UTF-8, bytes that are no UTF-8 replaced
    kWord,       // a text that occurs often: an int32 into a dictionary
    kInt64List,  // a shape
    kTextList,
};

struct Field {
    std::string_view name;
    Type type = Type::kDouble;
    bool nullable = false;
};

// Texts, one after the other: offsets[i] ... offsets[i + 1].
struct Texts {
    std::vector<std::int32_t> offsets = {0};
    std::string bytes;

    [[nodiscard]] std::size_t size() const noexcept { return offsets.size() - 1; }
    [[nodiscard]] std::string_view at(std::size_t i) const noexcept {
        return std::string_view(bytes).substr(static_cast<std::size_t>(offsets[i]),
                                              static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
    }
    void add(std::string_view text);
};

// Numbers for texts, in the order in which they were first asked for.
class Dictionary {
  public:
    [[nodiscard]] std::int32_t number_of(std::string_view text);
    // What is there now; the same object as before when nothing was added.
    [[nodiscard]] std::shared_ptr<const Texts> snapshot();

  private:
    std::unordered_map<std::string, std::int32_t> numbers_;
    Texts texts_;
    std::shared_ptr<const Texts> last_;
};

struct Column {
    Type type = Type::kDouble;
    std::size_t rows = 0;
    std::size_t nulls = 0;
    std::vector<std::byte> values;       // fixed width; of lists of numbers: those of all rows
    std::vector<std::uint8_t> validity;  // a bit per row, made with the first null
    std::vector<std::int32_t> offsets;   // of a list: rows + 1
    Texts texts;                         // kText: one per row; kTextList: those of all rows
    std::shared_ptr<const Texts> words;  // kWord

    explicit Column(Type of = Type::kDouble) : type(of) {
        if (of == Type::kInt64List || of == Type::kTextList) offsets = {0};
    }

    template <typename T>
    void add(T value) {
        static_assert(std::is_arithmetic_v<T>);
        const std::size_t at = values.size();
        values.resize(at + sizeof(T));
        std::memcpy(values.data() + at, &value, sizeof(T));
        end_row(true);
    }
    void add_text(std::string_view text);
    void add_list(const std::vector<std::int64_t>& list);
    void add_list(const std::vector<std::string>& list);
    void add_null();

    template <typename T>
    [[nodiscard]] T at(std::size_t row) const noexcept {
        T value;
        std::memcpy(&value, values.data() + row * sizeof(T), sizeof(T));
        return value;
    }
    [[nodiscard]] bool is_null(std::size_t row) const noexcept {
        return !validity.empty() && (validity[row / 8] >> (row % 8) & 1) == 0;
    }
    [[nodiscard]] std::string_view text_at(std::size_t row) const noexcept {
        return type == Type::kWord ? words->at(static_cast<std::size_t>(at<std::int32_t>(row)))
                                   : texts.at(row);
    }

  private:
    void end_row(bool valid);
};

// Bytes of one value of a type of fixed width; 0 for texts and lists.
[[nodiscard]] std::size_t width_of(Type type) noexcept;

struct Batch {
    std::size_t rows = 0;
    std::vector<Column> columns;  // one per field of the table
};

}  // namespace traindbg::tables
