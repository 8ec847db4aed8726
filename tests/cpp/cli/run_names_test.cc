#include "traindbg/cli/run_names.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "traindbg/cli/bootstrap.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {
namespace {

namespace fs = std::filesystem;

class RunNamesTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "traindbg-names-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        root_ = pattern;
    }
    void TearDown() override { fs::remove_all(root_); }

    void make_run(const std::string& name, std::int64_t started) {
        fs::create_directory(root_ + "/" + name);
        model::RunMeta meta;
        meta.run_id = name;
        meta.started_wall_nanos = started;
        ASSERT_TRUE(write_run_meta(root_ + "/" + name, meta, files_).is_ok());
    }

    std::string root_;
    storage::FileSystem& files_ = storage::posix_file_system();
};

TEST_F(RunNamesTest, LastIsTheOneThatStartedLastWhateverItsName) {
    make_run("z", 100);
    make_run("a", 300);
    make_run("m", 200);
    fs::create_directory(root_ + "/zz-not-a-run");
    EXPECT_EQ(*resolve_run("last", root_, files_), root_ + "/a");
    EXPECT_EQ(run_names(root_, files_), (std::vector<std::string>{"a", "m", "z"}));
}

TEST_F(RunNamesTest, ANameIsLookedUpUnderTheRoot) {
    make_run("night", 1);
    EXPECT_EQ(*resolve_run("night", root_, files_), root_ + "/night");
}

TEST_F(RunNamesTest, APathIsTakenAsItIs) {
    make_run("night", 1);
    EXPECT_EQ(*resolve_run(root_ + "/night/", "/nowhere", files_), root_ + "/night");
}

TEST_F(RunNamesTest, AWrongNameNamesTheNearestRun) {
    make_run("night-shift", 1);
    const auto result = resolve_run("nigth-shift", root_, files_);
    ASSERT_FALSE(result.is_ok());
    EXPECT_EQ(result.status().code(), base::Code::kNotFound);
    EXPECT_NE(result.status().message().find("did you mean 'night-shift'"), std::string::npos)
        << result.status().message();
}

TEST_F(RunNamesTest, WithoutRunsLastSaysWhereItLooked) {
    const auto result = resolve_run("last", root_ + "/none", files_);
    ASSERT_FALSE(result.is_ok());
    EXPECT_NE(result.status().message().find(root_ + "/none"), std::string::npos);
}

TEST_F(RunNamesTest, ADirectoryThatIsNoRunIsToldFromAMissingOne) {
    fs::create_directory(root_ + "/empty");
    EXPECT_NE(resolve_run(root_ + "/empty", root_, files_).status().message().find("not a run"),
              std::string::npos);
    EXPECT_NE(resolve_run(root_ + "/gone", root_, files_).status().message().find("no such directory"),
              std::string::npos);
}

TEST(NewRunName, IsMadeOfTheScriptAndIsAValidName) {
    for (const auto& [command, word] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"python", "-u", "src/train.py", "--x", "y.py"}, "train"},
             {{"python", "-m", "my.module"}, "my_module"},
             {{"./go now"}, "go_now"},
             {{"/"}, "_"},
             {{}, "run"}}) {
        const std::string name = new_run_name(command, 0);
        EXPECT_TRUE(name.ends_with("-" + word)) << name;
        EXPECT_TRUE(storage::is_valid_run_id(name)) << name;
    }
}

TEST_F(RunNamesTest, TheVerdictIsReadBackWithTheRulesAndTheirParameters) {
    make_run("a", 1);
    model::Verdict verdict;
    verdict.outcomes.push_back({"vanishing_gradient", model::CheckState::kClean, "", 5});
    verdict.outcomes.push_back({"overfit", model::CheckState::kNotChecked, "no evaluation", 0});
    const std::vector<rules::RuleChoice> choices = {{"vanishing_gradient", {{"ratio", 0.5}}},
                                                    {"overfit", {}}};
    ASSERT_TRUE(write_verdict(root_ + "/a", verdict, choices, files_).is_ok());
    const auto kept = read_verdict(root_ + "/a", files_);
    ASSERT_TRUE(kept.is_ok()) << kept.status().message();
    EXPECT_EQ(kept->verdict, verdict);
    ASSERT_EQ(kept->choices.size(), 2U);
    EXPECT_EQ(kept->choices[0].parameters.at("ratio"), 0.5);
    EXPECT_TRUE(kept->choices[1].parameters.empty());
}

TEST_F(RunNamesTest, TheStateOfARunFollowsItsFilesAndItsSupervisor) {
    make_run("a", 1);
    const std::string run = root_ + "/a";
    EXPECT_EQ(state_of_run(run, false, files_), RunState::kCrashed);  // no control page at all
    auto control = storage::ControlBlock::open(storage::RunLayout{run}.control());
    ASSERT_TRUE(control.is_ok());
    EXPECT_EQ(state_of_run(run, false, files_), RunState::kCrashed);  // nobody there
    {
        const auto lock = SupervisorLock::take(run);
        ASSERT_TRUE(lock.has_value());
        EXPECT_FALSE(SupervisorLock::take(run).has_value());
        EXPECT_EQ(state_of_run(run, false, files_), RunState::kWaiting);
        fs::create_directory(run + "/w0000");
        EXPECT_EQ(state_of_run(run, false, files_), RunState::kRunning);
        EXPECT_EQ(state_of_run(run, true, files_, /*supervised_by_us=*/true), RunState::kEnded);
    }
    (*control)->publish_pid(::getpid());
    (*control)->publish_state(storage::TrainingState::kAttached);
    EXPECT_EQ(state_of_run(run, false, files_), RunState::kRunning);
    for (const auto& [code, stopped, state] :
         std::vector<std::tuple<int, bool, RunState>>{{0, false, RunState::kEnded},
                                                      {1, false, RunState::kFailed},
                                                      {137, false, RunState::kCrashed},
                                                      {90, true, RunState::kStopped}}) {
        ASSERT_TRUE(write_run_end(run, {1, code, stopped, "x"}, files_).is_ok());
        EXPECT_EQ(state_of_run(run, false, files_), state) << code;
    }
}

TEST_F(RunNamesTest, TheBootstrapIsFoundAsInstalledAndAsInASourceTree) {
    ::unsetenv("TRAINDBG_BOOTSTRAP");
    EXPECT_FALSE(find_bootstrap(root_ + "/bin").is_ok());
    const auto make = [&](const std::string& directory) {
        fs::create_directories(root_ + directory);
        std::ofstream(root_ + directory + "/sitecustomize.py") << "\n";
        return root_ + directory;
    };
    const std::string tree = make("/python/traindbg/_bootstrap");
    EXPECT_EQ(*find_bootstrap(root_ + "/build"), tree);
    const std::string installed = make("/lib/python3.11/site-packages/traindbg/_bootstrap");
    EXPECT_EQ(*find_bootstrap(root_ + "/bin"), installed);
    ::setenv("TRAINDBG_BOOTSTRAP", (root_ + "/wrong").c_str(), 1);
    EXPECT_NE(find_bootstrap(root_ + "/bin").status().message().find("TRAINDBG_BOOTSTRAP"),
              std::string::npos);
    ::setenv("TRAINDBG_BOOTSTRAP", tree.c_str(), 1);
    EXPECT_EQ(*find_bootstrap(root_ + "/bin"), tree);
    ::unsetenv("TRAINDBG_BOOTSTRAP");
}

TEST(PythonPath, TheBootstrapComesFirstAndAnEmptyPathAddsNothing) {
    EXPECT_EQ(python_path_with("/b", nullptr), "/b");
    EXPECT_EQ(python_path_with("/b", ""), "/b");  // "/b:" would mean the working directory
    EXPECT_EQ(python_path_with("/b", "/x:/y"), "/b:/x:/y");
}

}  // namespace
}  // namespace traindbg::cli
