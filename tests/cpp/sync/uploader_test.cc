#include "traindbg/sync/uploader.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "traindbg/base/bytes.h"
#include "traindbg/base/format.h"
#include "traindbg/format/frame.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/storage/fault_object_store.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/storage/object_file_system.h"
#include "traindbg/sync/upload_thread.h"

namespace traindbg::sync {
namespace {

using base::ByteBuffer;
using base::Code;
using base::Status;
using storage::FaultObjectStore;
using storage::MemoryFileSystem;
using storage::ObjectCall;
using storage::ObjectFaultPlan;

// A run directory whose files grow as a writer's do.
class Writer {
  public:
    explicit Writer(MemoryFileSystem& files, const std::string& uuid = "u-1") : files_(files) {
        text("RUN.json", base::format(R"({{"schema_version":1,"run_id":"r","uuid":"{}"}})", uuid));
        text("control", "not part of the record");
    }
    void text(const std::string& name, std::string_view content) {
        const base::ByteSpan bytes = base::as_bytes(content);
        files_.set_content("/run/" + name, {bytes.begin(), bytes.end()});
    }
    void bytes(const std::string& name, ByteBuffer content) {
        files_.set_content("/run/" + name, std::move(content));
    }
    // Appends frames to a log, which it begins; gives its size.
    std::size_t frames(const std::string& name, int count, std::size_t payload = 100) {
        base::ByteWriter out;
        out.append(files_.content("/run/" + name));
        std::uint64_t& sequence = sequences_[name];
        format::FileHeader header;
        header.salt = 77;
        if (out.size() == 0) {
            format::append_file_header(out, header);
            sequence = 2;
        }
        for (int i = 0; i < count; ++i) {
            ByteBuffer content(payload, static_cast<std::byte>(sequence));
            const Status status =
                format::append_frame(out, format::FrameType::kEvent, sequence++, content, header.salt);
            EXPECT_TRUE(status.is_ok());
        }
        const std::size_t size = out.size();
        files_.set_content("/run/" + name, out.take());
        return size;
    }
    void append(const std::string& name, std::string_view more) {
        ByteBuffer content = files_.content("/run/" + name);
        const base::ByteSpan bytes = base::as_bytes(more);
        content.insert(content.end(), bytes.begin(), bytes.end());
        files_.set_content("/run/" + name, std::move(content));
    }
    void remove(const std::string& name) { ASSERT_TRUE(files_.remove("/run/" + name).is_ok()); }

  private:
    MemoryFileSystem& files_;
    std::map<std::string, std::uint64_t> sequences_;
};

class Upload : public ::testing::Test {
  protected:
    [[nodiscard]] UploadOptions options() const {
        UploadOptions options;
        options.run = "/run";
        options.prefix = "p/run";
        return options;
    }
    std::map<std::string, std::uint64_t> objects(storage::ObjectStore& store) {
        std::map<std::string, std::uint64_t> all;
        const auto listed = list_all(store, "p/", 100000, {});
        EXPECT_TRUE(listed.is_ok());
        if (listed.is_ok())
            for (const storage::ObjectInfo& object : *listed) all[object.key.substr(6)] = object.size;
        return all;
    }
    // What a reader of the bucket finds in a file; "-": no such file.
    std::string remote(storage::ObjectStore& store, const std::string& name) {
        storage::BlockCache cache("", 0);
        storage::ObjectFileSystem files(
            store, cache, {"s3://b", "x", std::chrono::nanoseconds(0), std::chrono::seconds(5)});
        const auto bytes = storage::read_whole(files, "s3://b/p/run/" + name);
        if (!bytes.is_ok())
            return bytes.status().code() == Code::kNotFound ? "-" : bytes.status().to_string();
        return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
    }
    std::string local(const std::string& name) {
        const ByteBuffer bytes = files_.content("/run/" + name);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }

    MemoryFileSystem files_;
    Writer writer_{files_};
    std::unique_ptr<storage::ObjectStore> store_ = storage::make_memory_object_store();
};

TEST_F(Upload, LogsGoUpInPiecesOfWholeFrames) {
    Uploader uploader(options(), files_, *store_);
    const std::size_t first = writer_.frames("w0000/000000.log", 5);
    writer_.append("w0000/000000.log", "TDBF\x10 half a frame");
    ASSERT_TRUE(uploader.round(false, {}).is_ok());
    EXPECT_EQ(objects(*store_), (std::map<std::string, std::uint64_t>{{"RUN.json", local("RUN.json").size()},
                                                                      {"w0000/000000.log.0000", first}}));
    // Nothing new: nothing is put.
    const std::uint64_t put = uploader.counts().objects_put;
    ASSERT_TRUE(uploader.round(false, {}).is_ok());
    EXPECT_EQ(uploader.counts().objects_put, put);
    // At the end the rest goes up as it is.
    ASSERT_TRUE(uploader.round(true, {}).is_ok());
    EXPECT_EQ(remote(*store_, "w0000/000000.log"), local("w0000/000000.log"));
}

TEST_F(Upload, ThePiecesOfALogGoOnceItsSegmentIsUp) {
    Uploader uploader(options(), files_, *store_);
    for (int i = 0; i < 3; ++i) {
        writer_.frames("w0000/000000.log", 5);
        ASSERT_TRUE(uploader.round(false, {}).is_ok());
    }
    EXPECT_EQ(objects(*store_).size(), 4U);
    writer_.text("w0000/000000.seg", "sealed");
    writer_.remove("w0000/000000.log");
    writer_.frames("w0000/000001.log", 1);
    ASSERT_TRUE(uploader.round(false, {}).is_ok());
    EXPECT_EQ(remote(*store_, "w0000/000000.seg"), "sealed");
    EXPECT_EQ(remote(*store_, "w0000/000000.log"), "-");
    EXPECT_EQ(remote(*store_, "w0000/000001.log"), local("w0000/000001.log"));
    EXPECT_EQ(uploader.counts().objects_removed, 3U);
}

TEST_F(Upload, ALogThatIsSealedAlreadyNeverGoesUp) {
    writer_.frames("w0000/000000.log", 5);
    writer_.text("w0000/000000.seg", "sealed");
    Uploader uploader(options(), files_, *store_);
    ASSERT_TRUE(uploader.round(false, {}).is_ok());
    EXPECT_EQ(objects(*store_).count("w0000/000000.log.0000"), 0U);
    EXPECT_EQ(remote(*store_, "w0000/000000.seg"), "sealed");
}

TEST_F(Upload, LargeFilesAreCutAtFrames) {
    UploadOptions small = options();
    small.piece_bytes = 1000;
    writer_.frames("w0000/000000.log", 40, 120);
    writer_.bytes("w0000/000000.blob", ByteBuffer(3500));
    Uploader uploader(small, files_, *store_);
    ASSERT_TRUE(uploader.round(false, {}).is_ok());
    std::uint64_t sum = 0;
    for (const auto& [name, size] : objects(*store_)) {
        EXPECT_LE(size, 1000U) << name;
        if (!name.starts_with("w0000/000000.log.")) continue;
        sum += size;
        const auto bytes = store_->get_range("p/run/" + name, 0, 4, "", {});
        ASSERT_TRUE(bytes.is_ok());
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes->data()), 4), "TDBF") << name;
    }
    EXPECT_EQ(sum, local("w0000/000000.log").size());
    EXPECT_EQ(remote(*store_, "w0000/000000.log"), local("w0000/000000.log"));
    EXPECT_EQ(remote(*store_, "w0000/000000.blob"), local("w0000/000000.blob"));
}

TEST_F(Upload, AFinishedBlobGoesUpWhole) {
    writer_.bytes("w0000/000000.blob", ByteBuffer(5000));
    writer_.bytes("w0000/000001.blob", ByteBuffer(70));
    Uploader uploader(options(), files_, *store_);
    ASSERT_TRUE(uploader.round(false, {}).is_ok());
    auto found = objects(*store_);
    EXPECT_EQ(found.at("w0000/000000.blob"), 5000U);
    EXPECT_EQ(found.at("w0000/000001.blob.0000"), 70U);
    // One that began in pieces stays in pieces: its bytes go up once.
    writer_.bytes("w0000/000001.blob", ByteBuffer(90));
    ASSERT_TRUE(uploader.round(true, {}).is_ok());
    found = objects(*store_);
    EXPECT_EQ(found.at("w0000/000001.blob.0001"), 20U);
    EXPECT_EQ(found.count("w0000/000001.blob"), 0U);
}

TEST_F(Upload, BlobsGoUpBeforeTheLogsThatNameTheirBytes) {
    std::vector<std::string> order;
    ObjectFaultPlan plan;
    plan.before = [&](ObjectCall call, const std::string& key) {
        if (call == ObjectCall::kPut || call == ObjectCall::kPutIfAbsent || call == ObjectCall::kPutFile)
            order.push_back(key.substr(6));
    };
    FaultObjectStore watched(*store_, plan);
    writer_.frames("w0000/000000.log", 3);
    writer_.bytes("w0000/000000.blob", ByteBuffer(100));
    writer_.text("plan.json", "{}");
    writer_.text("w0000/removed.json", "{}");
    writer_.text("verdict.json", "{}");
    writer_.text("END.json", "{}");
    Uploader uploader(options(), files_, watched);
    ASSERT_TRUE(uploader.round(true, {}).is_ok());
    EXPECT_EQ(order,
              (std::vector<std::string>{"RUN.json", "plan.json", "w0000/removed.json", "w0000/000000.blob",
                                        "w0000/000000.log.0000", "verdict.json", "END.json"}));
    EXPECT_TRUE(uploader.has_end());
}

TEST_F(Upload, OtherFilesGoUpAgainWhenTheyChanged) {
    writer_.text("verdict.json", "1");
    Uploader uploader(options(), files_, *store_);
    ASSERT_TRUE(uploader.round(false, {}).is_ok());
    writer_.text("verdict.json", "2");  // of the same size
    ASSERT_TRUE(uploader.round(false, {}).is_ok());
    EXPECT_EQ(remote(*store_, "verdict.json"), "2");
    const std::uint64_t put = uploader.counts().objects_put;
    ASSERT_TRUE(uploader.round(false, {}).is_ok());
    EXPECT_EQ(uploader.counts().objects_put, put);
    // Neither does the next process put it again.
    Uploader next(options(), files_, *store_);
    ASSERT_TRUE(next.round(false, {}).is_ok());
    EXPECT_EQ(next.counts().objects_put, 0U);
}

TEST_F(Upload, ControlAndTemporaryFilesStayHere) {
    writer_.text(".RUN.json.1.tmp", "x");
    writer_.frames("w0000/.000000.seg.tmp", 1);
    writer_.text("notworker/x", "x");
    Uploader uploader(options(), files_, *store_);
    ASSERT_TRUE(uploader.round(true, {}).is_ok());
    EXPECT_EQ(objects(*store_).size(), 1U);
}

TEST_F(Upload, AnotherRunsPrefixIsRefused) {
    Uploader first(options(), files_, *store_);
    ASSERT_TRUE(first.round(true, {}).is_ok());
    MemoryFileSystem others;
    Writer other(others, "u-2");
    other.frames("w0000/000000.log", 3);
    Uploader second(options(), others, *store_);
    const Status status = second.round(true, {});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("another run"), std::string::npos);
    EXPECT_EQ(objects(*store_).size(), 1U);
}

TEST_F(Upload, WhatIsNoRunIsNotUploaded) {
    writer_.remove("RUN.json");
    Uploader uploader(options(), files_, *store_);
    EXPECT_EQ(uploader.round(true, {}).code(), Code::kNotFound);
    EXPECT_TRUE(objects(*store_).empty());
}

TEST_F(Upload, ADryRunPutsNothingAndCountsTheSame) {
    writer_.frames("w0000/000000.log", 3);
    writer_.bytes("w0000/000000.blob", ByteBuffer(100));
    UploadOptions dry = options();
    dry.is_dry = true;
    Uploader looking(dry, files_, *store_);
    ASSERT_TRUE(looking.round(true, {}).is_ok());
    EXPECT_TRUE(objects(*store_).empty());
    Uploader doing(options(), files_, *store_);
    ASSERT_TRUE(doing.round(true, {}).is_ok());
    EXPECT_EQ(looking.counts().objects_put, doing.counts().objects_put);
    EXPECT_EQ(looking.counts().bytes_put, doing.counts().bytes_put);
}

TEST_F(Upload, ALogThatIsSealedUnderwayHoldsTheEndBack) {
    writer_.frames("w0000/000000.log", 5);
    writer_.text("END.json", "{}");
    bool is_sealed = false;
    storage::FaultPlan plan;
    plan.before = [&](storage::FileCall call, const std::string& path) {
        if (call != storage::FileCall::kOpen || !path.ends_with(".log") || is_sealed) return;
        is_sealed = true;
        writer_.text("w0000/000000.seg", "sealed");
        writer_.remove("w0000/000000.log");
    };
    storage::FaultFileSystem changing(files_, plan);
    Uploader uploader(options(), changing, *store_);
    EXPECT_EQ(uploader.round(true, {}).code(), Code::kUnavailable);
    EXPECT_FALSE(uploader.has_end());
    EXPECT_EQ(remote(*store_, "END.json"), "-");
    ASSERT_TRUE(uploader.round(true, {}).is_ok());
    EXPECT_TRUE(uploader.has_end());
    EXPECT_EQ(remote(*store_, "w0000/000000.seg"), "sealed");
    EXPECT_EQ(remote(*store_, "END.json"), "{}");
}

TEST_F(Upload, AFileThatBecameShorterIsTold) {
    writer_.frames("w0000/000000.log", 10);
    Uploader uploader(options(), files_, *store_);
    ASSERT_TRUE(uploader.round(true, {}).is_ok());
    const std::string before = remote(*store_, "w0000/000000.log");
    writer_.text("w0000/000000.log", "short");
    Uploader next(options(), files_, *store_);
    ASSERT_TRUE(next.round(true, {}).is_ok());
    ASSERT_EQ(next.troubles().size(), 1U);
    EXPECT_EQ(remote(*store_, "w0000/000000.log"), before);
}

TEST_F(Upload, TwoUploadersNeverMixTheirPieces) {
    Uploader one(options(), files_, *store_);
    Uploader two(options(), files_, *store_);
    std::mt19937 random(3);
    for (int i = 0; i < 200; ++i) {
        writer_.frames("w0000/000000.log", 1 + static_cast<int>(random() % 3));
        Uploader& turn = random() % 2 == 0 ? one : two;
        // The other one was there first: the next round looks anew.
        const Status status = turn.round(false, {});
        EXPECT_TRUE(status.is_ok() || status.code() == Code::kAlreadyExists) << status.to_string();
        const std::string there = remote(*store_, "w0000/000000.log");
        ASSERT_EQ(there, local("w0000/000000.log").substr(0, there.size()));
    }
    EXPECT_TRUE(one.round(true, {}).is_ok() || one.round(true, {}).is_ok());
    EXPECT_EQ(remote(*store_, "w0000/000000.log"), local("w0000/000000.log"));
}

// A run that grows, is sealed and ends, uploaded by a process that dies at its n-th call, before or after
// the call was carried out, and goes on as another. At every moment the bucket holds a prefix; at the end,
// all of it, and nothing twice.
class EveryCall : public Upload, public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(CarriedOut, EveryCall, ::testing::Bool());

TEST_P(EveryCall, MayBeTheLast) {
    std::map<std::string, std::uint64_t> undisturbed;
    std::uint64_t calls = UINT64_MAX;  // of an undisturbed upload
    for (std::uint64_t n = UINT64_MAX; n == UINT64_MAX || n <= calls; ++n) {
        MemoryFileSystem files;
        Writer writer(files);
        const auto store = storage::make_memory_object_store();
        ObjectFaultPlan plan;
        plan.fail_at_call = n;
        plan.keep_failing = false;
        plan.is_carried_out = GetParam();
        FaultObjectStore failing(*store, plan);
        auto uploader = std::make_unique<Uploader>(options(), files, failing);
        const auto round = [&](bool is_last) {
            if (uploader->round(is_last, {}).is_ok()) return;
            uploader = std::make_unique<Uploader>(options(), files, failing);  // another process
            const Status again = uploader->round(is_last, {});
            EXPECT_TRUE(again.is_ok()) << again.to_string() << " after call " << n;
        };
        for (int part = 0; part < 2; ++part) {
            const std::string log = base::format("w0000/{:06}.log", part);
            for (int i = 0; i < 3; ++i) {
                writer.bytes("w0000/000000.blob",
                             ByteBuffer(static_cast<std::size_t>(64 * (3 * part + i + 1))));
                writer.frames(log, 4);
                writer.text("verdict.json", std::to_string(i));
                round(false);
            }
            writer.text(base::format("w0000/{:06}.seg", part), "sealed " + std::to_string(part));
            writer.remove(log);
            round(false);
        }
        writer.text("END.json", "{}");
        round(true);
        const auto found = objects(*store);
        if (n == UINT64_MAX) {
            undisturbed = found;
            calls = failing.calls();
            EXPECT_EQ(found.count("w0000/000000.log.0000"), 0U);
            EXPECT_EQ(found.size(), 11U);  // three JSON files, two segments, six pieces of the blob
            ASSERT_GT(calls, 25U);
        }
        EXPECT_EQ(found, undisturbed) << "after call " << n;
    }
}

TEST(UploadThread, GoesOnAfterAnOutageAndTellsItOnce) {
    MemoryFileSystem files;
    Writer writer(files);
    writer.frames("w0000/000000.log", 3);
    const auto store = storage::make_memory_object_store();
    std::atomic<int> calls{0};
    ObjectFaultPlan plan;
    plan.before = [&](ObjectCall, const std::string&) { ++calls; };
    plan.fail_at_call = 0;
    plan.keep_failing = false;
    FaultObjectStore failing(*store, plan);
    UploadOptions options;
    options.run = "/run";
    options.prefix = "p";
    UploadThread thread(options, files, failing, std::chrono::milliseconds(1));
    while (thread.counts().rounds < 2) std::this_thread::yield();
    EXPECT_TRUE(thread.finish(std::chrono::seconds(30)).is_ok());
    EXPECT_EQ(thread.counts().objects_put, 2U);
    EXPECT_FALSE(thread.news().has_value());
}

TEST(UploadThread, GivesUpWhenTheTimeIsOver) {
    MemoryFileSystem files;
    Writer writer(files);
    const auto store = storage::make_memory_object_store();
    ObjectFaultPlan plan;
    plan.fail_at_call = 0;
    FaultObjectStore failing(*store, plan);
    UploadOptions options;
    options.run = "/run";
    options.prefix = "p";
    UploadThread thread(options, files, failing, std::chrono::hours(1));
    EXPECT_EQ(thread.finish(std::chrono::milliseconds(300)).code(), Code::kUnavailable);
}

TEST(UploadThread, OnceIsOnce) {
    MemoryFileSystem files;
    Writer writer(files);
    const auto store = storage::make_memory_object_store();
    UploadOptions options;
    options.run = "/run";
    options.prefix = "p";
    UploadThread thread(options, files, *store, std::chrono::hours(1), /*is_once=*/true);
    std::optional<Status> ended;
    while (!(ended = thread.ended())) std::this_thread::yield();
    EXPECT_TRUE(ended->is_ok());
    EXPECT_EQ(thread.counts().rounds, 1U);
}

}  // namespace
}  // namespace traindbg::sync
