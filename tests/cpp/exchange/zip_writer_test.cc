#include "traindbg/exchange/zip_writer.h"

#include <gtest/gtest.h>

#include <string>

#include "storage/temporary_directory.h"
#include "traindbg/exchange/array_names.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::exchange {
namespace {

TEST(Crc32, IsThatOfZip) {
    EXPECT_EQ(crc32(base::as_bytes("123456789")), 0xCBF4'3926U);
    EXPECT_EQ(crc32({}), 0U);
    const std::string text(1000, 'x');
    EXPECT_EQ(crc32(base::as_bytes(text)),
              crc32(base::as_bytes(text.substr(7)), crc32(base::as_bytes("xxxxxxx"))));
}

TEST(UniqueNames, ATakenNameGetsANumber) {
    UniqueNames names;
    EXPECT_EQ(names.take("a"), "a");
    EXPECT_EQ(names.take("a"), "a~2");
    EXPECT_EQ(names.take("a~2"), "a~2~2");
    EXPECT_EQ(names.take("a"), "a~3");
}

TEST(ZipWriter, ANameThatDoesNotFitIsRefusedAndNotCut) {
    const traindbg::testing::TemporaryDirectory directory;
    auto file = OutputFile::create(directory.path() + "/a.npz", false);
    ASSERT_TRUE(file.is_ok());
    ZipWriter zip(*file);
    EXPECT_TRUE(zip.add(std::string(65'535, 'n'), {}, {}).is_ok());
    const base::Status status = zip.add(std::string(65'536, 'm'), {}, {});
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
    EXPECT_LT(status.message().size(), 300U);
}

TEST(PathOf, LeadsNowhereElse) {
    EXPECT_EQ(path_of("weight/fc1.weight"), "weight/fc1.weight");
    EXPECT_EQ(path_of("../../etc/passwd"), "_/_/etc/passwd");
    EXPECT_EQ(path_of("/etc//x/."), "_/etc/_/x/_");
    EXPECT_EQ(path_of(""), "_");
}

}  // namespace
}  // namespace traindbg::exchange
