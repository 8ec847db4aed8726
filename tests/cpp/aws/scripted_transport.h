// A transport that answers from a list and writes down what it was asked: for decisions that depend on
// answers which no server gives on demand.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "traindbg/aws/credentials.h"
#include "traindbg/http/http.h"

namespace traindbg::aws::testing {

struct Asked {
    std::string method;
    std::string url;
    http::HeaderList headers;
    std::string body;

    [[nodiscard]] std::string header(const std::string& name) const {
        for (const auto& [key, value] : headers)
            if (key == name) return value;
        return {};
    }
};

class ScriptedTransport final : public http::HttpTransport {
  public:
    base::Result<http::HttpResponse> perform(const http::HttpRequest& request,
                                             const storage::Patience&) override {
        asked.push_back({request.method,
                         request.url,
                         request.headers,
                         {reinterpret_cast<const char*>(request.body.data()), request.body.size()}});
        if (answers.empty()) return base::Status(base::Code::kUnavailable, "connection refused");
        const std::size_t index = std::min(asked.size(), answers.size()) - 1;  // the last one repeats
        return answers[index](asked.back());
    }

    using Answer = std::function<base::Result<http::HttpResponse>(const Asked&)>;
    void reset() {
        answers.clear();
        asked.clear();
    }

    std::vector<Answer> answers;
    std::vector<Asked> asked;
};

inline ScriptedTransport::Answer answers(int status, std::string body = {}, http::HeaderList headers = {}) {
    return [=](const Asked&) -> base::Result<http::HttpResponse> {
        http::HttpResponse response;
        response.status = status;
        response.headers = headers;
        const base::ByteSpan bytes = base::as_bytes(body);
        response.body.assign(bytes.begin(), bytes.end());
        return response;
    };
}

inline ScriptedTransport::Answer breaks(base::Code code = base::Code::kUnavailable) {
    return [=](const Asked&) -> base::Result<http::HttpResponse> {
        return base::Status(code, "connection reset");
    };
}

inline Environment environment_of(std::map<std::string, std::string> values) {
    return [values = std::move(values)](const char* name) {
        const auto it = values.find(name);
        return it == values.end() ? std::string() : it->second;
    };
}

}  // namespace traindbg::aws::testing
