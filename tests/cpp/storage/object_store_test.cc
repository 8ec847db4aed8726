#include "traindbg/storage/object_store.h"

#include "storage/object_store_conformance.h"
#include "storage/temporary_directory.h"
#include "traindbg/storage/fault_object_store.h"

namespace traindbg::storage::testing {
namespace {

class MemoryDriver {
  public:
    ObjectStore& store() { return *store_; }
    static std::string prefix() { return "p/"; }
    static std::string why_not() { return {}; }
    static bool takes_odd_keys() { return true; }

  private:
    std::unique_ptr<ObjectStore> store_ = make_memory_object_store();
};

class FileDriver {
  public:
    ObjectStore& store() { return *store_; }
    static std::string prefix() { return "p/"; }
    static std::string why_not() { return {}; }
    static bool takes_odd_keys() { return false; }

  private:
    traindbg::testing::TemporaryDirectory directory_;
    std::unique_ptr<ObjectStore> store_ = make_file_object_store(posix_file_system(), directory_.path());
};

class FaultlessDriver {
  public:
    ObjectStore& store() { return store_; }
    static std::string prefix() { return "p/"; }
    static std::string why_not() { return {}; }
    static bool takes_odd_keys() { return true; }

  private:
    std::unique_ptr<ObjectStore> inner_ = make_memory_object_store();
    FaultObjectStore store_{*inner_, ObjectFaultPlan{}};
};

using Drivers = ::testing::Types<MemoryDriver, FileDriver, FaultlessDriver>;
INSTANTIATE_TYPED_TEST_SUITE_P(Local, ObjectStoreConformance, Drivers);

TEST(FileObjectStore, PathsThatLeaveItAreRefused) {
    traindbg::testing::TemporaryDirectory directory;
    const auto store = make_file_object_store(posix_file_system(), directory.path());
    for (const char* key : {"../a", "a/../../b", "/a", "a//b", ".a", "a/.b", "a/"})
        EXPECT_EQ(store->put(key, base::as_bytes("x"), {}).code(), base::Code::kInvalidArgument) << key;
}

TEST(FaultObjectStore, FailsWhenThePlanSays) {
    const auto inner = make_memory_object_store();
    ObjectFaultPlan plan;
    plan.fail_at_call = 1;
    plan.keep_failing = false;
    plan.is_carried_out = true;
    FaultObjectStore store(*inner, plan);
    EXPECT_TRUE(store.put("a", base::as_bytes("1"), {}).is_ok());
    EXPECT_EQ(store.put("b", base::as_bytes("2"), {}).code(), base::Code::kUnavailable);
    EXPECT_TRUE(store.head("b", {}).is_ok()) << "it was carried out, and its answer lost";
    EXPECT_EQ(store.calls(), 3U);
    EXPECT_EQ(store.calls(ObjectCall::kPut), 2U);
}

TEST(ListAll, RefusesMoreThanItMayHold) {
    const auto store = make_memory_object_store();
    for (int i = 0; i < 2500; ++i)
        ASSERT_TRUE(store->put("k" + std::to_string(i), base::as_bytes("x"), {}).is_ok());
    const auto all = list_all(*store, "k", 3000, {});
    ASSERT_TRUE(all.is_ok());
    EXPECT_EQ(all->size(), 2500U);
    EXPECT_EQ(list_all(*store, "k", 2499, {}).status().code(), base::Code::kResourceExhausted);
}

}  // namespace
}  // namespace traindbg::storage::testing
