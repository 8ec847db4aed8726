// Tells findings to services of AWS: SNS (topics, SMS, e-mail), CloudWatch (a metric), EventBridge (an
// event), Lambda (a function).
//
// Sources: the API references of Amazon SNS (2010-03-31), Amazon CloudWatch (2010-08-01), Amazon EventBridge
// (PutEvents) and AWS Lambda (Invoke, 2015-03-31).
#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "traindbg/actions/channel.h"
#include "traindbg/actions/target_options.h"
#include "traindbg/aws/client.h"
#include "traindbg/aws/xml.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {
namespace {

using aws::Client;
using aws::Form;
using base::Code;
using base::Result;
using base::Status;
using model::Json;
using storage::Patience;

constexpr std::string_view kSnsVersion = "2010-03-31";

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The part of an ARN between its colons: arn:aws:sns:REGION:account:name.
std::string_view part_of_arn(std::string_view arn, int number) {
    for (; number > 0; --number) {
        const std::size_t colon = arn.find(':');
        if (colon == std::string_view::npos) return {};
        arn.remove_prefix(colon + 1);
    }
    return arn.substr(0, arn.find(':'));
}

// Printable ASCII, at most so many letters: what a subject or an SMS may hold.
std::string plain(std::string_view text, std::size_t most) {
    std::string out;
    for (const char letter : text) {
        if (letter >= ' ' && letter <= '~') out += letter;
        else if (letter == '\n') out += ' ';
        else if ((static_cast<unsigned char>(letter) & 0xC0) != 0x80) out += '?';
    }
    if (out.size() > most) out = out.substr(0, most - 3) + "...";
    return out;
}

// A channel that makes calls to one service.
class AwsChannel : public Channel {
  public:
    AwsChannel(std::unique_ptr<Client> client, std::string what)
        : client_(std::move(client)), what_(std::move(what)) {}

    [[nodiscard]] std::string intention() const override {
        return base::format("{} at {}", what_, client_->where());
    }

  protected:
    [[nodiscard]] Result<http::HttpResponse> post(const aws::Call& call, const Patience& patience) {
        auto answer = client_->post(call, patience);
        if (!answer.is_ok())
            return Status(answer.status().code(), intention() + ": " + answer.status().message());
        return answer;
    }

  private:
    std::unique_ptr<Client> client_;
    std::string what_;
};

void add_attribute(Form& form, int number, std::string_view name, const std::string& value) {
    if (value.empty()) return;  // SNS refuses empty ones
    const std::string prefix = base::format("MessageAttributes.entry.{}.", number);
    form.emplace_back(prefix + "Name", name);
    form.emplace_back(prefix + "Value.DataType", "String");
    form.emplace_back(prefix + "Value.StringValue", value);
}

// The message to a topic: words, and what to filter by.
Form topic_form(const std::string& topic, const Notification& notification) {
    Form form = {{"TopicArn", topic},
                 {"Subject", plain(title_of(notification), 100)},
                 {"Message", title_of(notification) + "\n\n" + body_of(notification)}};
    add_attribute(form, 1, "id", notification.id);
    add_attribute(form, 2, "rule", notification.finding.rule);
    add_attribute(form, 3, "severity", std::string(model::to_string(notification.finding.severity)));
    add_attribute(form, 4, "run", base::printable(notification.run));
    if (topic.ends_with(".fifo")) {
        form.emplace_back("MessageGroupId", "traindbg");
        form.emplace_back("MessageDeduplicationId", notification.id);
    }
    return form;
}

class TopicChannel final : public AwsChannel {
  public:
    TopicChannel(std::unique_ptr<Client> client, std::string topic)
        : AwsChannel(std::move(client), "publish to topic " + base::printable(part_of_arn(topic, 5))),
          topic_(std::move(topic)) {}
    [[nodiscard]] std::string_view name() const noexcept override { return "sns"; }
    [[nodiscard]] Status deliver(const Notification& notification, const Patience& patience) override {
        return post(aws::query_call("Publish", kSnsVersion, topic_form(topic_, notification)), patience)
            .status();
    }

  private:
    const std::string topic_;
};

class SmsChannel final : public AwsChannel {
  public:
    SmsChannel(std::unique_ptr<Client> client, std::string number)
        : AwsChannel(std::move(client), "send an SMS to " + number), number_(std::move(number)) {}
    [[nodiscard]] std::string_view name() const noexcept override { return "sms"; }
    [[nodiscard]] Status deliver(const Notification& notification, const Patience& patience) override {
        constexpr std::size_t kMostLetters = 140;  // more is paid for as several
        const std::string text = plain(
            base::format("traindbg: {} (run {})", title_of(notification), notification.run), kMostLetters);
        return post(aws::query_call("Publish", kSnsVersion, {{"PhoneNumber", number_}, {"Message", text}}),
                    patience)
            .status();
    }

  private:
    const std::string number_;
};

// An address or a number as a subscriber of a topic that is made where it is not there, told apart from the
// others by the attribute that its subscription is filtered by. So the original's actions do it.
class SubscriberChannel final : public AwsChannel {
  public:
    SubscriberChannel(std::unique_ptr<Client> client, std::string subscriber, std::string topic)
        : AwsChannel(std::move(client), base::format("tell {} by topic {}", base::printable(subscriber),
                                                     base::printable(topic))),
          subscriber_(std::move(subscriber)),
          is_phone_(subscriber_.starts_with('+')),
          topic_(std::move(topic)) {}
    [[nodiscard]] std::string_view name() const noexcept override { return is_phone_ ? "sms" : "sns"; }

    [[nodiscard]] Status deliver(const Notification& notification, const Patience& patience) override {
        if (topic_arn_.empty()) {
            TRAINDBG_RETURN_IF_ERROR(make_topic(patience));
        }
        if (!is_subscribed_) {
            TRAINDBG_RETURN_IF_ERROR(subscribe(patience));
        }
        Form form = topic_form(topic_arn_, notification);
        add_attribute(form, 5, attribute(), subscriber_);
        return post(aws::query_call("Publish", kSnsVersion, form), patience).status();
    }

  private:
    [[nodiscard]] std::string_view attribute() const { return is_phone_ ? "phone_num" : "email"; }
    [[nodiscard]] std::string_view protocol() const { return is_phone_ ? "sms" : "email"; }

    // Idempotent: a topic that is there is given back.
    [[nodiscard]] Status make_topic(const Patience& patience) {
        TRAINDBG_ASSIGN_OR_RETURN(
            const http::HttpResponse answer,
            post(aws::query_call("CreateTopic", kSnsVersion, {{"Name", topic_}}), patience));
        TRAINDBG_RETURN_IF_ERROR(aws::scan_xml(answer.text(), [&](const aws::XmlEvent& event) {
            if (!event.is_begin && event.path.ends_with("/TopicArn")) topic_arn_ = event.text;
        }));
        return topic_arn_.empty() ? Status(Code::kUnavailable, intention() + ": the answer names no topic")
                                  : Status::ok();
    }

    [[nodiscard]] Status subscribe(const Patience& patience) {
        constexpr int kMostPages = 200;
        std::string next;
        for (int page = 0; page < kMostPages; ++page) {
            Form form = {{"TopicArn", topic_arn_}};
            if (!next.empty()) form.emplace_back("NextToken", next);
            TRAINDBG_ASSIGN_OR_RETURN(
                const http::HttpResponse answer,
                post(aws::query_call("ListSubscriptionsByTopic", kSnsVersion, form), patience));
            next.clear();
            std::string endpoint;
            std::string arn;
            std::string of_protocol;
            bool is_there = false;
            bool is_pending = false;
            TRAINDBG_RETURN_IF_ERROR(aws::scan_xml(answer.text(), [&](const aws::XmlEvent& event) {
                if (event.is_begin) return;
                if (event.path.ends_with("/NextToken")) next = event.text;
                if (event.path.ends_with("/member/Endpoint")) endpoint = event.text;
                if (event.path.ends_with("/member/Protocol")) of_protocol = event.text;
                if (event.path.ends_with("/member/SubscriptionArn")) arn = event.text;
                if (!event.path.ends_with("/member")) return;
                if (endpoint == subscriber_ && of_protocol == protocol()) {
                    is_there = true;
                    is_pending = arn == "PendingConfirmation";
                }
                endpoint.clear();
                of_protocol.clear();
                arn.clear();
            }));
            if (is_pending) return not_confirmed();
            is_subscribed_ = is_there;
            if (is_there) return Status::ok();
            if (next.empty()) break;
        }
        const Json filter = {{std::string(attribute()), Json::array({subscriber_})}};
        TRAINDBG_ASSIGN_OR_RETURN(const http::HttpResponse answer,
                                  post(aws::query_call("Subscribe", kSnsVersion,
                                                       {{"TopicArn", topic_arn_},
                                                        {"Protocol", std::string(protocol())},
                                                        {"Endpoint", subscriber_},
                                                        {"Attributes.entry.1.key", "FilterPolicy"},
                                                        {"Attributes.entry.1.value", dumped(filter)}}),
                                       patience));
        std::string arn;
        TRAINDBG_RETURN_IF_ERROR(aws::scan_xml(answer.text(), [&](const aws::XmlEvent& event) {
            if (!event.is_begin && event.path.ends_with("/SubscriptionArn")) arn = event.text;
        }));
        if (!arn.starts_with("arn:")) return not_confirmed();
        is_subscribed_ = true;
        return Status::ok();
    }

    // What is published before is not kept for who confirms later.
    [[nodiscard]] Status not_confirmed() const {
        return {Code::kPermissionDenied,
                intention() +
                    ": the subscription waits for its confirmation; follow the link in the mail of AWS"};
    }

    const std::string subscriber_;
    const bool is_phone_;
    const std::string topic_;
    std::string topic_arn_;
    bool is_subscribed_ = false;
};

class MetricChannel final : public AwsChannel {
  public:
    MetricChannel(std::unique_ptr<Client> client, std::string metric_namespace)
        : AwsChannel(std::move(client), "put a metric into " + base::printable(metric_namespace)),
          namespace_(std::move(metric_namespace)) {}
    [[nodiscard]] std::string_view name() const noexcept override { return "cloudwatch"; }

    // Two: one without dimensions, for an alarm about anything, and one by rule and severity.
    [[nodiscard]] Status deliver(const Notification& notification, const Patience& patience) override {
        Form form = {{"Namespace", namespace_},
                     {"MetricData.member.1.MetricName", "Findings"},
                     {"MetricData.member.1.Unit", "Count"},
                     {"MetricData.member.1.Value", base::format("{}", notification.withheld + 1)},
                     {"MetricData.member.2.MetricName", "Findings"},
                     {"MetricData.member.2.Unit", "Count"},
                     {"MetricData.member.2.Value", "1"}};
        const std::array<std::pair<std::string_view, std::string>, 2> dimensions = {
            std::pair{std::string_view("Rule"), notification.finding.rule},
            std::pair{std::string_view("Severity"),
                      std::string(model::to_string(notification.finding.severity))}};
        for (std::size_t i = 0; i < dimensions.size(); ++i) {
            const std::string prefix = base::format("MetricData.member.2.Dimensions.member.{}.", i + 1);
            form.emplace_back(prefix + "Name", dimensions[i].first);
            form.emplace_back(prefix + "Value", dimensions[i].second);
        }
        return post(aws::query_call("PutMetricData", "2010-08-01", form), patience).status();
    }

  private:
    const std::string namespace_;
};

class EventChannel final : public AwsChannel {
  public:
    EventChannel(std::unique_ptr<Client> client, std::string bus)
        : AwsChannel(std::move(client), "put an event on bus " + base::printable(bus)),
          bus_(std::move(bus)) {}
    [[nodiscard]] std::string_view name() const noexcept override { return "events"; }

    [[nodiscard]] Status deliver(const Notification& notification, const Patience& patience) override {
        const Json entry = {{"Source", "traindbg"},
                            {"DetailType", "Training Finding"},
                            {"Detail", dumped(to_json(notification))},
                            {"EventBusName", bus_}};
        aws::Call call;
        call.headers = {{"content-type", "application/x-amz-json-1.1"},
                        {"x-amz-target", "AWSEvents.PutEvents"}};
        call.body = dumped(Json{{"Entries", Json::array({entry})}});
        TRAINDBG_ASSIGN_OR_RETURN(const http::HttpResponse answer, post(call, patience));
        // An entry may fail though the call did not.
        const auto json = Json::parse(answer.text(), nullptr, /*allow_exceptions=*/false);
        if (!json.is_object()) return {Code::kUnavailable, intention() + ": the answer is not JSON"};
        const auto failed = json.find("FailedEntryCount");
        if (failed == json.end() || !failed->is_number() || failed->get<int>() == 0) return Status::ok();
        std::string code;
        std::string message;
        if (const auto entries = json.find("Entries"); entries != json.end() && entries->is_array() &&
                                                       !entries->empty() && entries->front().is_object()) {
            const auto text_of = [&entries](const char* key) {
                const auto found = entries->front().find(key);
                const bool is_text = found != entries->front().end() && found->is_string();
                return is_text ? found->get<std::string>() : std::string();
            };
            code = text_of("ErrorCode");
            message = text_of("ErrorMessage");
        }
        const bool may_pass =
            code == "ThrottlingException" || code == "InternalFailure" || code == "InternalException";
        return {may_pass ? Code::kUnavailable : Code::kInvalidArgument,
                base::format("{}: {} {}", intention(), base::printable(code), base::printable(message))};
    }

  private:
    const std::string bus_;
};

class FunctionChannel final : public AwsChannel {
  public:
    FunctionChannel(std::unique_ptr<Client> client, std::string function)
        : AwsChannel(std::move(client), "invoke function " + base::printable(function)),
          function_(std::move(function)) {}
    [[nodiscard]] std::string_view name() const noexcept override { return "lambda"; }

    // Asynchronously: what the function makes of it is its own affair, and Lambda tries again for it.
    [[nodiscard]] Status deliver(const Notification& notification, const Patience& patience) override {
        aws::Call call;
        call.path = "/2015-03-31/functions/" + function_ + "/invocations";
        call.headers = {{"content-type", "application/json"}, {"x-amz-invocation-type", "Event"}};
        call.body = dumped(to_json(notification));
        return post(call, patience).status();
    }

  private:
    const std::string function_;
};

bool is_phone_number(std::string_view text) {
    return text.size() >= 2 && text.size() <= 16 && text.front() == '+' &&
           std::all_of(text.begin() + 1, text.end(), [](char digit) { return digit >= '0' && digit <= '9'; });
}

// A name that AWS could have given: no blanks, nothing that ends a path or a header.
bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= 300 && std::all_of(text.begin(), text.end(), [](char letter) {
        return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
               (letter >= 'A' && letter <= 'Z') ||
               std::string_view("-_.:/$#").find(letter) != std::string_view::npos;
    });
}

// Also a mail address, which is of no other form than this.
bool is_subscriber(std::string_view text) {
    const std::size_t at = text.find('@');
    return at != std::string_view::npos && at > 0 && at + 1 < text.size() && at == text.rfind('@') &&
           std::all_of(text.begin(), text.end(), [](char letter) { return letter > ' ' && letter <= '~'; });
}

template <typename Kind, typename... Arguments>
std::unique_ptr<Channel> made(Arguments&&... arguments) {
    return std::make_unique<Kind>(std::forward<Arguments>(arguments)...);
}

}  // namespace

bool is_aws_target(std::string_view target) noexcept {
    const std::string_view word = target.substr(0, target.find(':'));
    return word != target && (word == "sns" || word == "cloudwatch" || word == "events" || word == "lambda");
}

Result<std::unique_ptr<Channel>> make_aws_channel(std::string_view text, const aws::Environment& environment,
                                                  storage::FileSystem& files,
                                                  std::unique_ptr<http::HttpTransport> transport) {
    static const std::vector<std::string> kOptions = {"region", "endpoint"};
    static const std::vector<std::string> kSnsOptions = {"region", "endpoint", "topic"};
    const auto wrong = [](std::string_view what) {
        return Status(Code::kInvalidArgument, std::string(what));
    };
    const std::string_view word = text.substr(0, text.find(':'));
    text.remove_prefix(word.size() + 1);
    TRAINDBG_ASSIGN_OR_RETURN(const Target target,
                              parse_target(text, word == "sns" ? kSnsOptions : kOptions));
    const std::string name(target.name);
    aws::ClientOptions options;
    options.region = target.option("region");
    options.endpoint_url = target.option("endpoint");
    if (name.starts_with("arn:") && options.region.empty()) options.region = part_of_arn(name, 3);
    const auto open = [&](const char* service, const char* variable) {
        options.service = service;
        options.variable = variable;
        return Client::open(options, std::move(transport), environment, files);
    };
    if (word == "cloudwatch") {
        if (!is_name(name) || name.starts_with("AWS/") || name.starts_with(':'))
            return wrong("names no namespace of your own, as in cloudwatch:traindbg");
        TRAINDBG_ASSIGN_OR_RETURN(auto client, open("monitoring", "CLOUDWATCH"));
        return made<MetricChannel>(std::move(client), name);
    }
    if (word == "events") {
        if (!is_name(name)) return wrong("names no event bus, as in events:default");
        TRAINDBG_ASSIGN_OR_RETURN(auto client, open("events", "EVENTBRIDGE"));
        return made<EventChannel>(std::move(client), name);
    }
    if (word == "lambda") {
        if (!is_name(name) || name.find('/') != std::string::npos)
            return wrong("names no function, as in lambda:on-finding");
        TRAINDBG_ASSIGN_OR_RETURN(auto client, open("lambda", "LAMBDA"));
        return made<FunctionChannel>(std::move(client), name);
    }
    const std::string topic = target.option("topic");
    if (!topic.empty() && (!is_name(topic) || topic.find_first_of(":/.") != std::string::npos))
        return wrong("topic: is a name of letters, digits, '-' and '_'");
    const bool is_phone = is_phone_number(name);
    if (name.starts_with("arn:")) {
        if (!is_name(name) || part_of_arn(name, 2) != "sns" || part_of_arn(name, 5).empty())
            return wrong("is no topic's ARN, as in sns:arn:aws:sns:eu-west-1:123456789012:findings");
        if (!topic.empty()) return wrong("topic: the ARN names it already");
    } else if (!is_phone && !is_subscriber(name)) {
        return wrong("give sns:arn:aws:sns:..., sns:+491234567 or sns:me@example.org");
    }
    TRAINDBG_ASSIGN_OR_RETURN(auto client, open("sns", "SNS"));
    if (name.starts_with("arn:")) return made<TopicChannel>(std::move(client), name);
    if (is_phone && topic.empty()) return made<SmsChannel>(std::move(client), name);
    return made<SubscriberChannel>(std::move(client), name, topic.empty() ? "traindbg" : topic);
}

}  // namespace traindbg::actions
