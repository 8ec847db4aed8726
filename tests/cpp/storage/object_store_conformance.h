// What every object store must do. A driver passes when all of these pass: tests/cpp/storage has those
// that need no server, tests/cpp/s3 runs them against a real one.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "traindbg/storage/memory_file_system.h"
#include "traindbg/storage/object_store.h"

namespace traindbg::storage::testing {

// `Driver` has: ObjectStore& store(); std::string prefix(), under which no other test puts anything;
// bool takes_odd_keys(); std::string why_not(), empty unless the tests cannot be run.
template <typename Driver>
class ObjectStoreConformance : public ::testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = driver_.why_not(); !why.empty()) GTEST_SKIP() << why;
    }
    [[nodiscard]] std::string at(const std::string& name) { return driver_.prefix() + name; }
    [[nodiscard]] ObjectStore& store() { return driver_.store(); }
    void put(const std::string& name, std::string_view content = "x") {
        const base::Status status = store().put(at(name), base::as_bytes(content), {});
        ASSERT_TRUE(status.is_ok()) << status.to_string();
    }
    [[nodiscard]] std::string get(const std::string& name, std::uint64_t offset = 0,
                                  std::size_t size = 1 << 20) {
        const auto bytes = store().get_range(at(name), offset, size, "", {});
        if (!bytes.is_ok()) return "error: " + bytes.status().to_string();
        return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
    }
    // All pages, as names without the prefix.
    [[nodiscard]] std::vector<std::string> names(ListRequest request) {
        const std::size_t cut = driver_.prefix().size();
        std::vector<std::string> all;
        request.prefix = at(request.prefix);
        if (!request.after.empty()) request.after = at(request.after);
        for (int pages = 0; pages < 100; ++pages) {
            const auto page = store().list(request, {});
            if (!page.is_ok()) return {"error: " + page.status().to_string()};
            for (const ObjectInfo& object : page->objects) all.push_back(object.key.substr(cut));
            for (const std::string& directory : page->directories) all.push_back(directory.substr(cut));
            if (page->next.empty()) return all;
            request.page = page->next;
        }
        return {"error: the list does not end"};
    }

    Driver driver_;
};

TYPED_TEST_SUITE_P(ObjectStoreConformance);

TYPED_TEST_P(ObjectStoreConformance, WhatWasPutIsReadBack) {
    this->put("a", "hello world");
    EXPECT_EQ(this->get("a"), "hello world");
    EXPECT_EQ(this->get("a", 6, 3), "wor");
    EXPECT_EQ(this->get("a", 10, 100), "d");
    EXPECT_EQ(this->get("a", 11, 5), "");
    EXPECT_EQ(this->get("a", 1ULL << 40, 5), "");
    EXPECT_EQ(this->get("a", 0, 0), "");
    const auto info = this->store().head(this->at("a"), {});
    ASSERT_TRUE(info.is_ok()) << info.status().to_string();
    EXPECT_EQ(info->size, 11U);
    EXPECT_EQ(info->key, this->at("a"));
}

TYPED_TEST_P(ObjectStoreConformance, BytesOfEveryValueSurvive) {
    std::string all;
    for (int i = 0; i < 70000; ++i) all += static_cast<char>(i * 31 + (i >> 8));
    this->put("bytes", all);
    EXPECT_EQ(this->get("bytes"), all);
    EXPECT_EQ(this->get("bytes", 65000, 2000), all.substr(65000, 2000));
}

TYPED_TEST_P(ObjectStoreConformance, AnEmptyObjectIsAnObject) {
    this->put("empty", "");
    EXPECT_EQ(this->get("empty"), "");
    const auto info = this->store().head(this->at("empty"), {});
    ASSERT_TRUE(info.is_ok());
    EXPECT_EQ(info->size, 0U);
    EXPECT_EQ(this->names({}), std::vector<std::string>{"empty"});
}

TYPED_TEST_P(ObjectStoreConformance, PuttingAgainReplaces) {
    this->put("a", "old");
    const auto before = this->store().head(this->at("a"), {});
    this->put("a", "newer");
    const auto after = this->store().head(this->at("a"), {});
    ASSERT_TRUE(before.is_ok() && after.is_ok());
    EXPECT_EQ(this->get("a"), "newer");
    EXPECT_NE(before->etag, after->etag);
    EXPECT_FALSE(after->etag.empty());
}

TYPED_TEST_P(ObjectStoreConformance, AReaderWithATagNoticesAnotherObject) {
    this->put("a", "old!!");
    const auto before = this->store().head(this->at("a"), {});
    ASSERT_TRUE(before.is_ok());
    const auto same = this->store().get_range(this->at("a"), 0, 3, before->etag, {});
    EXPECT_TRUE(same.is_ok()) << same.status().to_string();
    this->put("a", "newer");
    EXPECT_EQ(this->store().get_range(this->at("a"), 0, 3, before->etag, {}).status().code(),
              base::Code::kDataLoss);
}

TYPED_TEST_P(ObjectStoreConformance, WhatIsMissingIsNotFound) {
    EXPECT_EQ(this->store().head(this->at("no"), {}).status().code(), base::Code::kNotFound);
    EXPECT_EQ(this->store().get_range(this->at("no"), 0, 1, "", {}).status().code(), base::Code::kNotFound);
    EXPECT_TRUE(this->store().remove(this->at("no"), {}).is_ok());
    EXPECT_TRUE(this->names({}).empty());
}

TYPED_TEST_P(ObjectStoreConformance, PutIfAbsentNeverReplaces) {
    const std::string key = this->at("a");
    EXPECT_TRUE(this->store().put_if_absent(key, base::as_bytes("one"), {}).is_ok());
    EXPECT_EQ(this->store().put_if_absent(key, base::as_bytes("two"), {}).code(), base::Code::kAlreadyExists);
    EXPECT_EQ(this->store().put_if_absent(key, base::as_bytes("one and more"), {}).code(),
              base::Code::kAlreadyExists);
    EXPECT_TRUE(this->store().put_if_absent(key, base::as_bytes("one"), {}).is_ok());
    EXPECT_EQ(this->get("a"), "one");
}

TYPED_TEST_P(ObjectStoreConformance, RemovingIsFinal) {
    this->put("a");
    EXPECT_TRUE(this->store().remove(this->at("a"), {}).is_ok());
    EXPECT_EQ(this->store().head(this->at("a"), {}).status().code(), base::Code::kNotFound);
    EXPECT_TRUE(this->names({}).empty());
}

TYPED_TEST_P(ObjectStoreConformance, ListsAreInKeyOrderAndPaged) {
    for (const char* name : {"b/2", "a", "b/10", "b.x", "c", "b/1"}) this->put(name);
    const std::vector<std::string> all = {"a", "b.x", "b/1", "b/10", "b/2", "c"};
    EXPECT_EQ(this->names({}), all);
    for (std::size_t limit : {1U, 2U, 3U, 5U, 6U, 7U}) {
        ListRequest request;
        request.limit = limit;
        EXPECT_EQ(this->names(request), all) << limit;
    }
    ListRequest below;
    below.prefix = "b/";
    EXPECT_EQ(this->names(below), (std::vector<std::string>{"b/1", "b/10", "b/2"}));
    ListRequest after;
    after.after = "b/1";
    EXPECT_EQ(this->names(after), (std::vector<std::string>{"b/10", "b/2", "c"}));
    after.after = "b/11";  // need not exist
    EXPECT_EQ(this->names(after), (std::vector<std::string>{"b/2", "c"}));
}

TYPED_TEST_P(ObjectStoreConformance, ShallowListsNameDirectoriesOnce) {
    for (const char* name : {"r1/RUN.json", "r1/w0000/0.log", "r1/w0000/1.log", "r2/RUN.json", "z"})
        this->put(name);
    ListRequest request;
    request.shallow = true;
    auto found = this->names(request);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, (std::vector<std::string>{"r1/", "r2/", "z"}));
    request.limit = 1;
    found = this->names(request);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, (std::vector<std::string>{"r1/", "r2/", "z"}));
    request.prefix = "r1/";
    found = this->names(request);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, (std::vector<std::string>{"r1/RUN.json", "r1/w0000/"}));
}

TYPED_TEST_P(ObjectStoreConformance, OddKeysAreKeys) {
    if (!this->driver_.takes_odd_keys()) GTEST_SKIP() << "this driver refuses them";
    const std::vector<std::string> odd = {"a b",   "a%20b", "a+b", "a&b=c", "a;b",  "a?b#c", "a'(b)!*",
                                          "a\"b<", "a\\b",  "ä/€", "a=b",   "a,b@", "a:b",   "a/../b",
                                          "a/./b", "~a",    "a$b", "[a]",   "{a}",  "a|b^`"};
    for (const std::string& name : odd) this->put(name, name);
    for (const std::string& name : odd) EXPECT_EQ(this->get(name), name);
    std::vector<std::string> sorted = odd;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(this->names({}), sorted);
    for (const std::string& name : odd) EXPECT_TRUE(this->store().remove(this->at(name), {}).is_ok());
    EXPECT_TRUE(this->names({}).empty());
}

TYPED_TEST_P(ObjectStoreConformance, KeysThatAreNoneAreRefused) {
    EXPECT_EQ(this->store().put("", base::as_bytes("x"), {}).code(), base::Code::kInvalidArgument);
    EXPECT_EQ(this->store().put(std::string(1025, 'a'), base::as_bytes("x"), {}).code(),
              base::Code::kInvalidArgument);
    EXPECT_EQ(this->store().put(std::string("a\0b", 3), base::as_bytes("x"), {}).code(),
              base::Code::kInvalidArgument);
}

TYPED_TEST_P(ObjectStoreConformance, FilesOfAllSizesGoUpWhole) {
    MemoryFileSystem files;
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5} << 20,
                                   (std::size_t{16} << 20) + 1, (std::size_t{25} << 20) + 77}) {
        base::ByteBuffer content(size);
        for (std::size_t i = 0; i < size; i += 97) content[i] = static_cast<std::byte>(i * 2654435761U >> 24);
        files.set_content("/f", content);
        auto file = files.open("/f");
        ASSERT_TRUE(file.is_ok());
        const base::Status status = this->store().put_file(this->at("file"), **file, size, {});
        ASSERT_TRUE(status.is_ok()) << status.to_string();
        const auto info = this->store().head(this->at("file"), {});
        ASSERT_TRUE(info.is_ok());
        EXPECT_EQ(info->size, size);
        const auto back = this->store().get_range(this->at("file"), 0, size + 1, info->etag, {});
        ASSERT_TRUE(back.is_ok()) << back.status().to_string();
        EXPECT_TRUE(*back == content) << size;
    }
}

TYPED_TEST_P(ObjectStoreConformance, AFileThatIsTooShortPutsNothing) {
    MemoryFileSystem files;
    files.set_content("/f", base::ByteBuffer(std::size_t{17} << 20));
    auto file = files.open("/f");
    ASSERT_TRUE(file.is_ok());
    EXPECT_EQ(this->store().put_file(this->at("file"), **file, std::uint64_t{18} << 20, {}).code(),
              base::Code::kDataLoss);
    EXPECT_EQ(this->store().head(this->at("file"), {}).status().code(), base::Code::kNotFound);
}

TYPED_TEST_P(ObjectStoreConformance, NobodyWaitsLongerThanTheyWill) {
    const std::atomic<bool> cancelled{true};
    EXPECT_EQ(this->store().put(this->at("a"), base::as_bytes("x"), {INT64_MAX, &cancelled}).code(),
              base::Code::kUnavailable);
    EXPECT_EQ(this->store().head(this->at("a"), {base::monotonic_nanos() - 1, nullptr}).status().code(),
              base::Code::kUnavailable);
    EXPECT_EQ(this->store().list({}, {INT64_MAX, &cancelled}).status().code(), base::Code::kUnavailable);
}

REGISTER_TYPED_TEST_SUITE_P(ObjectStoreConformance, WhatWasPutIsReadBack, BytesOfEveryValueSurvive,
                            AnEmptyObjectIsAnObject, PuttingAgainReplaces,
                            AReaderWithATagNoticesAnotherObject, WhatIsMissingIsNotFound,
                            PutIfAbsentNeverReplaces, RemovingIsFinal, ListsAreInKeyOrderAndPaged,
                            ShallowListsNameDirectoriesOnce, OddKeysAreKeys, KeysThatAreNoneAreRefused,
                            FilesOfAllSizesGoUpWhole, AFileThatIsTooShortPutsNothing,
                            NobodyWaitsLongerThanTheyWill);

}  // namespace traindbg::storage::testing
