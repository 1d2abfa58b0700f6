#include <gmock/gmock.h>
#include <string_view>

#include "cuda/device_image.h"

namespace patternd::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<DeviceImage> images() {
  std::vector<DeviceImage> out;
  for (int architecture : {72, 75, 80, 86, 87, 90, 110, 120}) {
    out.push_back({"sm_" + std::to_string(architecture), ImageKind::kNative, architecture, "", 0});
  }
  out.push_back({"compute_120", ImageKind::kPtx, 120, "", 0});
  out.push_back({"universal", ImageKind::kUniversal, 30, "", 0});
  out.push_back({"universal", ImageKind::kUniversal, 70, "", 0});
  out.push_back({"universal", ImageKind::kUniversal, 80, "", 0});
  return out;
}

std::vector<std::string> names_for(int major, int minor, const std::string& wanted = "auto") {
  std::vector<std::string> names;
  const auto found = images_for(images(), major, minor, wanted);
  if (!found) return {found.error().message};
  for (const DeviceImage& image : *found) names.push_back(image.name);
  return names;
}

TEST(DeviceImage, TakesNativeCodeFirstAndTheUniversalImageLast) {
  EXPECT_THAT(names_for(9, 0), ElementsAre("sm_90", "universal", "universal"));
}

TEST(DeviceImage, TakesAnOlderArchitectureOfTheSameMajorNumber) {
  EXPECT_THAT(names_for(8, 9), ElementsAre("sm_86", "sm_80", "universal", "universal"));
}

TEST(DeviceImage, DoesNotExchangeMachineCodeBetweenTegraAndOthers) {
  EXPECT_THAT(names_for(8, 7), ElementsAre("sm_87", "universal", "universal"));
  EXPECT_THAT(names_for(7, 5), ElementsAre("sm_75", "universal"));
}

TEST(DeviceImage, ServesTegraK1WithTheUniversalImage) {
  EXPECT_THAT(names_for(3, 2), ElementsAre("universal"));
}

TEST(DeviceImage, ServesAFutureGpuWithTheNewestPtx) {
  EXPECT_THAT(names_for(13, 0), ElementsAre("compute_120", "universal", "universal"));
}

TEST(DeviceImage, TakesTheOneAskedForAlone) {
  EXPECT_THAT(names_for(9, 0, "universal"), ElementsAre("universal", "universal"));
}

// Of sm_30 and those since sm_70: a GPU never gets one that goes wrong with its warps; and of these
// the newest that it can run first, then those before it, which a driver may know that does not
// know the newest.
TEST(DeviceImage, TakesTheUniversalImagesFormForTheGpusWarpsAndMatrixUnits) {
  const auto forms_for = [](int major, int minor) {
    std::vector<int> forms;
    const auto found = images_for(images(), major, minor, "universal");
    if (!found) return forms;
    for (const DeviceImage& image : *found) forms.push_back(image.architecture);
    return forms;
  };
  EXPECT_THAT(forms_for(3, 2), ElementsAre(30));
  EXPECT_THAT(forms_for(5, 3), ElementsAre(30));
  EXPECT_THAT(forms_for(6, 2), ElementsAre(30));
  EXPECT_THAT(forms_for(7, 0), ElementsAre(70));
  EXPECT_THAT(forms_for(7, 2), ElementsAre(70));
  EXPECT_THAT(forms_for(7, 5), ElementsAre(70));
  EXPECT_THAT(forms_for(8, 0), ElementsAre(80, 70));
  EXPECT_THAT(forms_for(8, 7), ElementsAre(80, 70));
  EXPECT_THAT(forms_for(12, 0), ElementsAre(80, 70));
}

// So that a GPU of today can try what Tegra K1 runs.
TEST(DeviceImage, GivesATestTheFormThatItNamesWhateverTheGpu) {
  for (const int form : {30, 70, 80}) {
    SCOPED_TRACE(form);
    const std::string name = "universal_sm_" + std::to_string(form);
    for (const int major : {3, 9}) {
      const auto found = images_for(images(), major, 0, name);
      ASSERT_TRUE(found) << found.error().message;
      ASSERT_EQ(found->size(), 1U);
      EXPECT_EQ(found->front().architecture, form);
      EXPECT_EQ(found->front().name, name);
    }
  }
}

TEST(DeviceImage, IsDescribedWithItsForm) {
  EXPECT_EQ(described({"sm_90", ImageKind::kNative, 90, "", 0}), "sm_90");
  EXPECT_EQ(described({"universal", ImageKind::kUniversal, 80, "", 0}), "universal for sm_80");
}

TEST(DeviceImage, WaitsForTheLaunchAheadSinceHopperButNotInTheUniversalImage) {
  EXPECT_FALSE(waits_for_launches({"sm_89", ImageKind::kNative, 89, "", 0}));
  EXPECT_TRUE(waits_for_launches({"sm_90", ImageKind::kNative, 90, "", 0}));
  EXPECT_TRUE(waits_for_launches({"compute_120", ImageKind::kPtx, 120, "", 0}));
  EXPECT_FALSE(waits_for_launches({"universal", ImageKind::kUniversal, 70, "", 0}));
  EXPECT_FALSE(waits_for_launches({"universal", ImageKind::kUniversal, 100, "", 0}));
}

TEST(DeviceImage, NamesWhatThereIsWhereNothingSuits) {
  EXPECT_THAT(names_for(9, 0, "sm_75"),
              ElementsAre("compute.image: is sm_75, of which this build has nothing for this GPU "
                          "(compute capability 9.0); must be auto, or one of sm_90, universal"));
  EXPECT_THAT(names_for(2, 1, "auto"),
              ElementsAre("this build has no device image for a GPU of compute capability 2.1; it "
                          "has sm_72, sm_75, sm_80, sm_86, sm_87, sm_90, sm_110, sm_120, "
                          "compute_120, universal"));
  const auto found = images_for(images(), 9, 0, "sm_75", "--image");
  EXPECT_THAT(found.error().message, testing::StartsWith("--image: is sm_75, "));
}

TEST(DeviceImage, EmbedsWholeImages) {
  for (const DeviceImage& image : embedded_images()) {
    SCOPED_TRACE(image.name);
    ASSERT_GT(image.size_bytes, 1000U);
    const auto* bytes = static_cast<const char*>(image.data);
    EXPECT_EQ(bytes[image.size_bytes], '\0');
    if (image.kind == ImageKind::kNative) {
      EXPECT_EQ(std::string_view(bytes, 4),
                "\x7f"
                "ELF");
    } else {
      EXPECT_THAT(std::string(bytes, image.size_bytes), HasSubstr(".version"));
    }
  }
}

}  // namespace
}  // namespace patternd::cuda
