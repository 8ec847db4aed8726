// The suite of all object stores against a real S3 server process that checks signatures.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "aws/scripted_transport.h"
#include "storage/object_store_conformance.h"
#include "traindbg/aws/sign.h"
#include "traindbg/aws/xml.h"
#include "traindbg/base/format.h"
#include "traindbg/s3/s3_object_store.h"

namespace traindbg::s3 {
namespace {

using base::Code;

// One moto_server for all tests of this program. Its first three actions need no signature: with them a
// user and her key are made; from then on every signature is checked.
class Server {
  public:
    static Server* get() {
        static Server server;
        return server.why_not_.empty() ? &server : nullptr;
    }
    static std::string why_not() {
        get();
        return instance_why_not();
    }
    [[nodiscard]] const std::string& url() const { return url_; }
    [[nodiscard]] const std::string& access_key() const { return access_key_; }
    [[nodiscard]] const std::string& secret_key() const { return secret_key_; }
    http::HttpTransport& transport() { return *transport_; }

    [[nodiscard]] aws::Environment environment(std::string secret = "") const {
        return aws::testing::environment_of(
            {{"AWS_ACCESS_KEY_ID", access_key_},
             {"AWS_SECRET_ACCESS_KEY", secret.empty() ? secret_key_ : secret}});
    }
    std::unique_ptr<S3ObjectStore> open(const aws::Environment& environment) {
        S3Options options;
        options.bucket = "bucket";
        options.endpoint_url = url_;
        auto store = open_s3(options, *transport_, environment, storage::posix_file_system());
        EXPECT_TRUE(store.is_ok()) << store.status().to_string();
        return std::move(store).value();
    }

  private:
    static std::string& instance_why_not() {
        static std::string text;
        return text;
    }

    Server() {
        why_not_ = start();
        instance_why_not() = why_not_;
    }
    ~Server() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }

    static int free_port() {
        const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        const bool bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                           ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
        ::close(socket);
        return bound ? ntohs(address.sin_port) : 0;
    }

    std::string start() {
        std::string program = TRAINDBG_SOURCE_DIR "/.venv/bin/moto_server";
        if (const char* setting = std::getenv("TRAINDBG_MOTO_SERVER"); setting != nullptr) program = setting;
        if (::access(program.c_str(), X_OK) != 0)
            return program + ": not there; make setup installs it (or set TRAINDBG_MOTO_SERVER)";
        const std::string port = std::to_string(free_port());
        url_ = "http://127.0.0.1:" + port;
        ::setenv("INITIAL_NO_AUTH_ACTION_COUNT", "3", 1);
        std::array<char*, 6> arguments = {
            program.data(),          const_cast<char*>("-H"),         const_cast<char*>("127.0.0.1"),
            const_cast<char*>("-p"), const_cast<char*>(port.c_str()), nullptr};
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
        const int error = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        if (error != 0) return program + ": did not start";
        transport_ = http::make_curl_transport();
        http::HttpRequest alive;
        alive.url = url_ + "/moto-api/";
        for (int attempt = 0;; ++attempt) {
            const auto answer = transport_->perform(alive, {});
            if (answer.is_ok()) break;
            if (answer.status().code() == Code::kUnsupported) return answer.status().message();
            if (attempt == 600) return "moto_server: did not answer: " + answer.status().message();
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        iam("Action=CreateUser&Version=2010-05-08&UserName=u");
        iam("Action=PutUserPolicy&Version=2010-05-08&UserName=u&PolicyName=p&PolicyDocument=" +
            aws::percent_encode(
                R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]})",
                false));
        const std::string made = iam("Action=CreateAccessKey&Version=2010-05-08&UserName=u");
        const auto status = aws::scan_xml(made, [&](const aws::XmlEvent& event) {
            if (event.path.ends_with("/AccessKeyId")) access_key_ = event.text;
            if (event.path.ends_with("/SecretAccessKey")) secret_key_ = event.text;
        });
        if (secret_key_.empty()) return "moto_server: made no key: " + status.to_string() + made;
        // The bucket: the store itself never makes one.
        aws::Credentials credentials;
        credentials.access_key = access_key_;
        credentials.secret_key = secret_key_;
        http::HttpRequest request;
        request.method = "PUT";
        aws::RequestTarget target{"http", url_.substr(7), "/bucket", {}};
        request.url = aws::url_of(target);
        aws::sign_request("PUT", target, request.headers, {}, credentials, "us-east-1", "s3",
                          base::wall_nanos());
        const auto answer = transport_->perform(request, {});
        if (!answer.is_ok() || answer->status != 200) return "moto_server: made no bucket";
        return "";
    }

    std::string iam(const std::string& form) {
        aws::Credentials credentials;
        credentials.access_key = "any";
        credentials.secret_key = "any";
        http::HttpRequest request;
        request.method = "POST";
        aws::RequestTarget target{"http", url_.substr(7), "/", {}};
        request.url = aws::url_of(target);
        request.body = base::as_bytes(form);
        request.headers.emplace_back("content-type", "application/x-www-form-urlencoded");
        aws::sign_request("POST", target, request.headers, request.body, credentials, "us-east-1", "iam",
                          base::wall_nanos());
        const auto answer = transport_->perform(request, {});
        return answer.is_ok() ? std::string(answer->text()) : answer.status().to_string();
    }

    std::string why_not_;
    std::string url_;
    std::string access_key_;
    std::string secret_key_;
    pid_t pid_ = -1;
    std::unique_ptr<http::HttpTransport> transport_;
};

class S3Driver {
  public:
    S3Driver() {
        static int tests = 0;
        prefix_ = base::format("t{}/", ++tests);
        if (Server::get() != nullptr) store_ = Server::get()->open(Server::get()->environment());
    }
    storage::ObjectStore& store() { return *store_; }
    [[nodiscard]] std::string prefix() const { return prefix_; }
    static bool takes_odd_keys() { return true; }
    static std::string why_not() { return Server::why_not(); }

  private:
    std::string prefix_;
    std::unique_ptr<S3ObjectStore> store_;
};

}  // namespace
}  // namespace traindbg::s3

namespace traindbg::storage::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(S3, ObjectStoreConformance, ::testing::Types<s3::S3Driver>);
}  // namespace traindbg::storage::testing

namespace traindbg::s3 {
namespace {

class LiveStore : public ::testing::Test {
  protected:
    void SetUp() override {
        server_ = Server::get();
        if (server_ == nullptr) GTEST_SKIP() << Server::why_not();
    }
    Server* server_ = nullptr;
};

TEST_F(LiveStore, AWrongSecretIsRefused) {
    const auto store = server_->open(server_->environment("wrong"));
    const auto status = store->put("wrong/a", base::as_bytes("x"), {});
    EXPECT_EQ(status.code(), Code::kPermissionDenied);
    EXPECT_NE(status.message().find("secret key"), std::string::npos) << status.message();
    EXPECT_EQ(store->counts().retries, 0U);
    EXPECT_EQ(store->list({}, {}).status().code(), Code::kPermissionDenied);
    EXPECT_EQ(store->head("wrong/a", {}).status().code(), Code::kPermissionDenied);
}

TEST_F(LiveStore, AnUnknownKeyIsRefused) {
    const auto store = server_->open(
        aws::testing::environment_of({{"AWS_ACCESS_KEY_ID", "AKIAUNKNOWN"}, {"AWS_SECRET_ACCESS_KEY", "x"}}));
    EXPECT_EQ(store->put("a", base::as_bytes("x"), {}).code(), Code::kPermissionDenied);
}

TEST_F(LiveStore, AMissingBucketIsNamed) {
    S3Options options;
    options.bucket = "no-such-bucket";
    options.endpoint_url = server_->url();
    const auto store =
        open_s3(options, server_->transport(), server_->environment(), storage::posix_file_system());
    ASSERT_TRUE(store.is_ok());
    const auto status = (*store)->put("a", base::as_bytes("x"), {});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("no such bucket"), std::string::npos) << status.message();
}

TEST_F(LiveStore, ListsOfMoreThanAThousandHavePages) {
    const auto store = server_->open(server_->environment());
    constexpr int kObjects = 1050;
    for (int i = 0; i < kObjects; ++i)
        ASSERT_TRUE(store->put(base::format("many/{:05}", i), base::as_bytes("x"), {}).is_ok());
    const std::uint64_t before = store->counts().puts;
    const auto all = storage::list_all(*store, "many/", 10000, {});
    ASSERT_TRUE(all.is_ok()) << all.status().to_string();
    EXPECT_EQ(all->size(), std::size_t{kObjects});
    EXPECT_EQ(all->back().key, "many/01049");
    EXPECT_EQ(store->counts().puts - before, 2U);
}

TEST_F(LiveStore, NobodyListeningIsUnavailable) {
    S3Options options;
    options.bucket = "bucket";
    options.endpoint_url = "http://127.0.0.1:1";
    options.retry = {3, std::chrono::milliseconds(1), std::chrono::milliseconds(2),
                     std::chrono::milliseconds(5000)};
    const auto store =
        open_s3(options, server_->transport(), server_->environment(), storage::posix_file_system());
    ASSERT_TRUE(store.is_ok());
    EXPECT_EQ((*store)->put("a", base::as_bytes("x"), {}).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace traindbg::s3
