#include "pipeline/sources/v4l2_controls.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "pipeline/yaml_reader.h"

namespace patternd {
namespace {

// More controls than any camera has: a driver whose enumeration never ends.
constexpr std::size_t kMaxControls = 4096;

struct Control {
  std::string name;
  v4l2_query_ext_ctrl info;
};

bool is_switch(const Control& control) {
  return control.info.type == V4L2_CTRL_TYPE_BOOLEAN || control.info.type == V4L2_CTRL_TYPE_MENU ||
         control.info.type == V4L2_CTRL_TYPE_INTEGER_MENU;
}

bool is_menu(const Control& control) {
  return control.info.type == V4L2_CTRL_TYPE_MENU ||
         control.info.type == V4L2_CTRL_TYPE_INTEGER_MENU;
}

bool has_plain_value(const v4l2_query_ext_ctrl& info) {
  switch (info.type) {
    case V4L2_CTRL_TYPE_INTEGER:
    case V4L2_CTRL_TYPE_BOOLEAN:
    case V4L2_CTRL_TYPE_MENU:
    case V4L2_CTRL_TYPE_INTEGER_MENU:
    case V4L2_CTRL_TYPE_BUTTON:
    case V4L2_CTRL_TYPE_BITMASK:
    case V4L2_CTRL_TYPE_INTEGER64:
      return info.nr_of_dims == 0 && (info.flags & V4L2_CTRL_FLAG_DISABLED) == 0;
    default:
      return false;
  }
}

std::vector<Control> list_controls(const V4l2Device& device) {
  std::vector<Control> controls;
  v4l2_query_ext_ctrl query{};
  query.id = V4L2_CTRL_FLAG_NEXT_CTRL;
  while (controls.size() < kMaxControls && device.call(VIDIOC_QUERY_EXT_CTRL, &query) == 0) {
    if (has_plain_value(query)) {
      const std::string name(query.name, strnlen(query.name, sizeof query.name));
      controls.push_back({control_name(name), query});
    }
    const std::uint32_t id = query.id;
    query = v4l2_query_ext_ctrl{};
    query.id = id | V4L2_CTRL_FLAG_NEXT_CTRL;
  }
  return controls;
}

// The menu's entries as text: " 1 (Manual Mode), 3 (Aperture Priority Mode)"; `valid` tells
// whether `value` is among them.
std::string menu_text(const V4l2Device& device, const Control& control, std::int64_t value,
                      bool& valid) {
  std::string text;
  valid = false;
  for (std::int64_t i = control.info.minimum; i <= control.info.maximum && i < 256; ++i) {
    v4l2_querymenu entry{};
    entry.id = control.info.id;
    entry.index = static_cast<std::uint32_t>(i);
    if (device.call(VIDIOC_QUERYMENU, &entry) < 0) continue;
    valid = valid || i == value;
    const char* const name = reinterpret_cast<const char*>(entry.name);
    const std::string label = control.info.type == V4L2_CTRL_TYPE_MENU
                                  ? std::string(name, strnlen(name, sizeof entry.name))
                                  : std::to_string(entry.value);
    text += (text.empty() ? " " : ", ") + std::to_string(i) + " (" + label + ")";
  }
  return text;
}

// What is wrong with a value, or nothing.
std::string check_value(const V4l2Device& device, const Control& control, std::int64_t value) {
  const v4l2_query_ext_ctrl& info = control.info;
  if ((info.flags & V4L2_CTRL_FLAG_READ_ONLY) != 0) return control.name + ": can only be read";
  if (info.type == V4L2_CTRL_TYPE_BUTTON) return {};
  if (is_menu(control)) {
    bool valid = false;
    const std::string entries = menu_text(device, control, value, valid);
    if (valid) return {};
    return control.name + ": " + std::to_string(value) + " is not on its menu;" + entries;
  }
  if (info.type == V4L2_CTRL_TYPE_BITMASK) {
    if ((value & ~info.maximum) == 0) return {};
    return control.name + ": " + std::to_string(value) + " has bits beyond those of " +
           std::to_string(info.maximum);
  }
  if (value < info.minimum || value > info.maximum) {
    return control.name + ": " + std::to_string(value) + " is out of range; " +
           std::to_string(info.minimum) + " to " + std::to_string(info.maximum);
  }
  const auto offset = static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(info.minimum);
  if (info.step > 1 && offset % info.step != 0) {
    return control.name + ": " + std::to_string(value) + " is between steps; " +
           std::to_string(info.minimum) + " and every " + std::to_string(info.step) + " above";
  }
  return {};
}

// Sets one control; what went wrong, or nothing.
std::string set_value(const V4l2Device& device, const Control& control, std::int64_t value) {
  const bool wide = control.info.type == V4L2_CTRL_TYPE_INTEGER64;
  v4l2_ext_control entry{};
  entry.id = control.info.id;
  if (wide)
    entry.value64 = value;
  else
    entry.value = static_cast<std::int32_t>(value);
  v4l2_ext_controls request{};
  request.which = V4L2_CTRL_WHICH_CUR_VAL;
  request.count = 1;
  request.controls = &entry;
  if (const int got = device.call(VIDIOC_S_EXT_CTRLS, &request); got < 0) {
    const bool automatic = got == -EACCES || got == -EBUSY || got == -EIO;
    return control.name + ": the camera refuses " + std::to_string(value) + " (" +
           std::generic_category().message(-got) + ")" +
           (automatic ? "; an automatic mode may hold it, which is a control of its own" : "");
  }
  if (control.info.type == V4L2_CTRL_TYPE_BUTTON) return {};
  const std::int64_t set = wide ? entry.value64 : entry.value;
  if (set == value) return {};
  return control.name + ": asked for " + std::to_string(value) + ", but the driver set " +
         std::to_string(set);
}

std::string unknown_text(const std::string& name, const std::vector<Control>& controls) {
  std::vector<std::string> names;
  std::string all;
  for (const Control& control : controls) {
    names.push_back(control.name);
    all += " " + control.name;
  }
  const std::string nearest = nearest_word(name, names);
  return name + ": no such control" + (nearest.empty() ? "" : "; did you mean " + nearest + "?") +
         "; this camera has" + (all.empty() ? " none" : ":" + all);
}

}  // namespace

std::string control_name(const std::string& name) {
  std::string text;
  bool gap = false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0) {
      gap = true;
      continue;
    }
    if (gap && !text.empty()) text += '_';
    gap = false;
    text += static_cast<char>(std::tolower(byte));
  }
  return text;
}

Result<void> set_controls(const V4l2Device& device,
                          const std::map<std::string, std::int64_t>& wanted) {
  if (wanted.empty()) return {};
  const std::vector<Control> controls = list_controls(device);
  std::vector<std::pair<const Control*, std::int64_t>> settings;
  std::vector<std::string> faults;
  for (const auto& [name, value] : wanted) {
    const auto found = std::find_if(controls.begin(), controls.end(),
                                    [&n = name](const Control& c) { return c.name == n; });
    if (found == controls.end()) {
      faults.push_back(unknown_text(name, controls));
      continue;
    }
    if (std::string wrong = check_value(device, *found, value); !wrong.empty())
      faults.push_back(std::move(wrong));
    else
      settings.emplace_back(&*found, value);
  }
  if (faults.empty()) {
    std::sort(settings.begin(), settings.end(), [](const auto& a, const auto& b) {
      const bool a_first = is_switch(*a.first);
      return a_first != is_switch(*b.first) ? a_first : a.first->name < b.first->name;
    });
    for (const auto& [control, value] : settings) {
      if (std::string wrong = set_value(device, *control, value); !wrong.empty())
        faults.push_back(std::move(wrong));
    }
  }
  if (faults.empty()) return {};
  std::string text = device.path() + ": camera.controls: " + faults.front();
  for (std::size_t i = 1; i < faults.size(); ++i) text += "; " + faults[i];
  return fail(ErrorCode::kInvalidArgument, text);
}

}  // namespace patternd
