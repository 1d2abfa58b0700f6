// patternctl rectify: takes lens and perspective out of one picture, 8 or 16 bit.
#include "tools/patternctl/command_rectify.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "daemon/messages.h"
#include "pipeline/image_file.h"
#include "pipeline/input_file.h"
#include "pipeline/rectify.h"
#include "tools/patternctl/rectify_cuda.h"
#include "tools/usage_error.h"

namespace patternd::tools {
namespace {

struct RectifyArguments {
  std::string calibration;
  std::string backend = "auto";
  int threads = 0;
  std::string input;
  std::string output;
};

std::string size_text(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

Result<Image> rectify_picture(const RectifyArguments& a) {
  auto model = load_camera_model(a.calibration);
  if (!model) return tl::make_unexpected(model.error());
  auto picture = read_image(a.input);
  if (!picture) return tl::make_unexpected(picture.error());
  if (picture->width() != model->image_width || picture->height() != model->image_height) {
    return fail(ErrorCode::kInvalidArgument,
                a.input + " has " + size_text(picture->width(), picture->height()) + " pixels; " +
                    a.calibration + " is for " +
                    size_text(model->image_width, model->image_height) + " (image_size)");
  }
  // One picture on the CPU is done before a GPU is set up: auto means the CPU.
  if (a.backend == "cuda") return rectify_on_cuda(*model, std::as_const(*picture).view());
  auto rectifier = Rectifier::create(*model, picture->format());
  if (!rectifier) {
    return fail(rectifier.error().code, a.calibration + ": " + rectifier.error().message);
  }
  auto output = Image::create(model->output_width(), model->output_height(), picture->format());
  if (!output) return tl::make_unexpected(output.error());
  ThreadPool pool(a.threads);
  rectifier->process(std::as_const(*picture).view(), output->view(), &pool);
  return output;
}

Result<void> run(const RectifyArguments& a, bool json) {
  if (auto named = check_image_file_name(a.output); !named) return named;
  if (auto kept = keep_inputs(a.output, {a.input, a.calibration}); !kept) return kept;
  auto output = rectify_picture(a);
  if (!output) return tl::make_unexpected(output.error());
  if (auto written = write_image(a.output, std::as_const(*output).view()); !written) {
    return tl::make_unexpected(written.error());
  }
  if (json) {
    const std::string line = line_of({{"type", "rectified"},
                                      {"image", a.output},
                                      {"width", output->width()},
                                      {"height", output->height()}});
    std::fputs(line.c_str(), stdout);
  }
  return {};
}

}  // namespace

void add_rectify(CLI::App& program, Context& context) {
  auto arguments = std::make_shared<RectifyArguments>();
  RectifyArguments& a = *arguments;
  CLI::App* command = program.add_subcommand(
      "rectify", "Takes lens and perspective out of a picture (8 or 16 bit)");
  command->add_option("--calibration", a.calibration, "The camera's calibration file")->required();
  command->add_option("--backend", a.backend, "auto and cpu: the CPU; cuda: GPU 0")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--threads", a.threads, "0: as many as there are")
      ->check(between(0, 1024))
      ->capture_default_str();
  command->add_option("IN", a.input, "PNG, JPEG or PNM")->required();
  command->add_option("OUT", a.output, "PNG, or PGM by its name")->required();
  command->callback([arguments, &context] {
    if (auto done = run(*arguments, context.json); !done) context.fail("rectify", done.error());
  });
}

}  // namespace patternd::tools
