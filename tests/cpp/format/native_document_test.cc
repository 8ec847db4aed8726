// The worked example of docs/format/native.md is what this code writes.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/records.h"

namespace traindbg::format {
namespace {

base::ByteBuffer example_log() {
    FileHeader header;
    header.worker = 3;
    header.salt = 0x0807060504030201;
    for (std::size_t i = 0; i < header.run_uuid.size(); ++i)
        header.run_uuid[i] = static_cast<std::byte>(i * 0x11);
    model::TensorTable table(2);
    table[0].name = "weight/fc";
    table[0].role = model::Role::kWeight;
    table[0].module = "fc";
    table[0].module_type = "Linear";
    table[0].layer = 0;
    table[0].dtype = tensor::DType::kFloat32;
    table[0].shape = {2, 3};
    table[1].id = 1;
    table[1].name = "loss";
    table[1].role = model::Role::kLoss;
    model::StepRecord record;
    record.step = 300;
    record.sequence = 301;
    record.wall_nanos = 1'700'000'000'000'000'000;
    record.monotonic_nanos = 1'000'000'000;
    record.step_nanos = 1000;
    record.capture_nanos = 10;
    model::TensorSample sample;
    sample.statistics = {6, 0, 0, 0, 2, -1.0, 2.0, 0.5, 1.0, 4.0, 2.5};
    record.tensors = {sample};
    record.scalars = {{1, 0.25}};

    base::ByteWriter out;
    append_file_header(out, header);
    std::uint64_t sequence = 2;
    const auto add = [&](FrameType type, const base::ByteWriter& payload) {
        EXPECT_TRUE(append_frame(out, type, sequence++, payload.bytes(), header.salt).is_ok());
    };
    base::ByteWriter schema;
    encode_schema(schema, table);
    add(FrameType::kSchema, schema);
    base::ByteWriter step;
    encode_step(step, record, table, {});
    add(FrameType::kStep, step);
    base::ByteWriter end;
    encode_totals(end, {1'700'000'000'000'000'001, 1, 0, 0});
    add(FrameType::kEnd, end);
    return out.take();
}

std::string hex_lines(base::ByteSpan bytes) {
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        if (at % 16 == 0) text += base::format("{}{:04x} ", at == 0 ? "" : "\n", at);
        text += base::format(" {:02x}", std::to_integer<unsigned>(bytes[at]));
    }
    return text + "\n";
}

TEST(NativeDocumentTest, TheWorkedExampleIsWhatIsWritten) {
    std::ifstream file(TRAINDBG_SOURCE_DIR "/docs/format/native.md");
    std::stringstream content;
    content << file.rdbuf();
    const std::string text = content.str();
    const std::string marker = "```hex\n";
    const std::size_t begin = text.find(marker);
    ASSERT_NE(begin, std::string::npos);
    const std::size_t end = text.find("```", begin + marker.size());
    EXPECT_EQ(text.substr(begin + marker.size(), end - begin - marker.size()), hex_lines(example_log()));
}

}  // namespace
}  // namespace traindbg::format
