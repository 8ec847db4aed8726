#include "traindbg/tables/arrow_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace traindbg::tables {
namespace {

const char* format_of(Type type) noexcept {
    switch (type) {
        case Type::kUInt32: return "I";
        case Type::kUInt64: return "L";
        case Type::kInt32: return "i";
        case Type::kInt64: return "l";
        case Type::kDouble: return "g";
        case Type::kTime: return "tsn:UTC";
        case Type::kText: return "u";
        case Type::kWord: return "i";  // of the index; the values are the dictionary's
        case Type::kInt64List:
        case Type::kTextList: return "+l";
    }
    return "n";
}

// ---- schemas: each node owns its own name and the structures below it ----

struct SchemaNode {
    std::string name;
    std::vector<std::unique_ptr<ArrowSchema>> children;
    std::vector<ArrowSchema*> pointers;
    std::unique_ptr<ArrowSchema> dictionary;
};

// Those below that were not moved out.
template <typename Node>
void release_below(Node& node) noexcept {
    for (const auto& child : node.children)
        if (child->release != nullptr) child->release(child.get());
    if (node.dictionary && node.dictionary->release != nullptr)
        node.dictionary->release(node.dictionary.get());
}

void release_schema(ArrowSchema* schema) {
    const std::unique_ptr<SchemaNode> node(static_cast<SchemaNode*>(schema->private_data));
    release_below(*node);
    schema->release = nullptr;
    schema->private_data = nullptr;
}

// A structure that has nothing below it yet.
void fill(ArrowSchema& out, const char* format, std::string_view name, bool nullable) {
    auto node = std::make_unique<SchemaNode>();
    node->name = name;
    out = {};
    out.format = format;
    out.name = node->name.c_str();
    out.flags = nullable ? ARROW_FLAG_NULLABLE : 0;
    out.release = &release_schema;
    out.private_data = node.release();
}

ArrowSchema& add_child(ArrowSchema& parent, const char* format, std::string_view name, bool nullable) {
    auto& node = *static_cast<SchemaNode*>(parent.private_data);
    auto child = std::make_unique<ArrowSchema>();
    node.pointers.reserve(node.pointers.size() + 1);
    node.children.reserve(node.children.size() + 1);
    fill(*child, format, name, nullable);
    node.pointers.push_back(child.get());
    node.children.push_back(std::move(child));
    parent.n_children = static_cast<std::int64_t>(node.children.size());
    parent.children = node.pointers.data();
    return *node.children.back();
}

void make_schema(const std::vector<Field>& fields, ArrowSchema& out) {
    fill(out, "+s", "", false);
    for (const Field& field : fields) {
        ArrowSchema& column = add_child(out, format_of(field.type), field.name, field.nullable);
        if (field.type == Type::kInt64List) add_child(column, "l", "item", false);
        if (field.type == Type::kTextList) add_child(column, "u", "item", false);
        if (field.type == Type::kWord) {
            auto& node = *static_cast<SchemaNode*>(column.private_data);
            auto values = std::make_unique<ArrowSchema>();
            fill(*values, "u", "", false);
            node.dictionary = std::move(values);
            column.dictionary = node.dictionary.get();
        }
    }
}

// ---- arrays: each node keeps the whole batch alive ----

struct ArrayNode {
    std::shared_ptr<const Batch> batch;
    std::array<const void*, 3> buffers{};
    std::vector<std::unique_ptr<ArrowArray>> children;
    std::vector<ArrowArray*> pointers;
    std::unique_ptr<ArrowArray> dictionary;
};

void release_array(ArrowArray* array) {
    const std::unique_ptr<ArrayNode> node(static_cast<ArrayNode*>(array->private_data));
    release_below(*node);
    array->release = nullptr;
    array->private_data = nullptr;
}

// Consumers may look at a buffer that has nothing in it, but not at a null one.
const void* never_null(const void* data) noexcept {
    static constexpr std::array<std::uint64_t, 8> kNothing{};
    return data == nullptr ? static_cast<const void*>(kNothing.data()) : data;
}

void fill(ArrowArray& out, const std::shared_ptr<const Batch>& batch, std::size_t length,
          std::initializer_list<const void*> buffers, std::size_t nulls = 0) {
    auto node = std::make_unique<ArrayNode>();
    node->batch = batch;
    std::copy(buffers.begin(), buffers.end(), node->buffers.begin());
    out = {};
    out.length = static_cast<std::int64_t>(length);
    out.null_count = static_cast<std::int64_t>(nulls);
    out.n_buffers = static_cast<std::int64_t>(buffers.size());
    out.buffers = node->buffers.data();
    out.release = &release_array;
    out.private_data = node.release();
}

ArrowArray& add_child(ArrowArray& parent) {
    auto& node = *static_cast<ArrayNode*>(parent.private_data);
    node.children.push_back(std::make_unique<ArrowArray>(ArrowArray{}));
    node.pointers.push_back(node.children.back().get());
    parent.n_children = static_cast<std::int64_t>(node.children.size());
    parent.children = node.pointers.data();
    return *node.children.back();
}

void fill_texts(ArrowArray& out, const std::shared_ptr<const Batch>& batch, const Texts& texts,
                const void* validity = nullptr, std::size_t nulls = 0) {
    fill(out, batch, texts.size(), {validity, texts.offsets.data(), never_null(texts.bytes.data())}, nulls);
}

void fill_column(ArrowArray& out, const std::shared_ptr<const Batch>& batch, const Column& column) {
    const void* const validity = column.validity.empty() ? nullptr : column.validity.data();
    switch (column.type) {
        case Type::kText: return fill_texts(out, batch, column.texts, validity, column.nulls);
        case Type::kInt64List:
            fill(out, batch, column.rows, {validity, column.offsets.data()}, column.nulls);
            return fill(add_child(out), batch, column.values.size() / sizeof(std::int64_t),
                        {nullptr, never_null(column.values.data())});
        case Type::kTextList:
            fill(out, batch, column.rows, {validity, column.offsets.data()}, column.nulls);
            return fill_texts(add_child(out), batch, column.texts);
        default: break;
    }
    fill(out, batch, column.rows, {validity, never_null(column.values.data())}, column.nulls);
    if (column.type != Type::kWord) return;
    auto& node = *static_cast<ArrayNode*>(out.private_data);
    node.dictionary = std::make_unique<ArrowArray>(ArrowArray{});
    out.dictionary = node.dictionary.get();
    fill_texts(*out.dictionary, batch, *column.words);
}

// Runs `make(out)`, which may run out of memory half way, and leaves either a whole structure or none.
template <typename Structure, typename Make>
bool whole_or_nothing(Structure* out, Make&& make) noexcept {
    *out = {};
    try {
        make(*out);
        return true;
    } catch (const std::exception&) {
        if (out->release != nullptr) out->release(out);
        *out = {};
        return false;
    }
}

// ---- the stream ----

struct StreamState {
    std::unique_ptr<TableReader> reader;
    int error = 0;
    std::string message;
};

StreamState& state_of(ArrowArrayStream* stream) noexcept {
    return *static_cast<StreamState*>(stream->private_data);
}

int out_of_memory(StreamState& state) noexcept {
    state.error = ENOMEM;
    state.message.clear();  // get_last_error has a text of its own for this
    return ENOMEM;
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
    StreamState& state = state_of(stream);
    return to_arrow_schema(state.reader->fields(), out) ? 0 : out_of_memory(state);
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
    StreamState& state = state_of(stream);
    *out = {};
    if (state.error != 0) return state.error;
    try {
        base::Result<std::optional<Batch>> batch = state.reader->next();
        if (!batch.is_ok()) {
            state.error = batch.status().code() == base::Code::kResourceExhausted ? ENOMEM : EIO;
            state.message = batch.status().message();
            return state.error;
        }
        if (!batch->has_value()) return 0;  // the end: `out` stays released
        return to_arrow_array(std::move(**batch), out) ? 0 : out_of_memory(state);
    } catch (const std::exception&) {
        return out_of_memory(state);
    }
}

const char* get_last_error(ArrowArrayStream* stream) {
    const StreamState& state = state_of(stream);
    if (state.error == 0) return nullptr;
    return state.message.empty() ? "traindbg: no memory for a batch of a table" : state.message.c_str();
}

void release_stream(ArrowArrayStream* stream) {
    const std::unique_ptr<StreamState> state(static_cast<StreamState*>(stream->private_data));
    stream->release = nullptr;
    stream->private_data = nullptr;
}

}  // namespace

bool to_arrow_schema(const std::vector<Field>& fields, ArrowSchema* out) noexcept {
    return whole_or_nothing(out, [&](ArrowSchema& schema) { make_schema(fields, schema); });
}

bool to_arrow_array(Batch batch, ArrowArray* out) noexcept {
    return whole_or_nothing(out, [&](ArrowArray& array) {
        const auto kept = std::make_shared<const Batch>(std::move(batch));
        fill(array, kept, kept->rows, {nullptr});
        for (const Column& column : kept->columns) fill_column(add_child(array), kept, column);
    });
}

bool to_arrow_stream(std::unique_ptr<TableReader> reader, ArrowArrayStream* out) noexcept {
    return whole_or_nothing(out, [&](ArrowArrayStream& stream) {
        auto state = std::make_unique<StreamState>();
        state->reader = std::move(reader);
        stream.get_schema = &get_schema;
        stream.get_next = &get_next;
        stream.get_last_error = &get_last_error;
        stream.release = &release_stream;
        stream.private_data = state.release();
    });
}

}  // namespace traindbg::tables
