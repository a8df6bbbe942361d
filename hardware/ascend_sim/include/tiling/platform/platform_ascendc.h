// The properties of the chip, for the host function.
#pragma once
#include "../../abi.h"

namespace platform_ascendc {

enum class SocVersion { ASCEND910 = 0, ASCEND910B, ASCEND310P, ASCEND310B, RESERVED_VERSION };
enum class CoreMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, RESERVED };

class PlatformAscendC {
public:
    explicit PlatformAscendC(void * = nullptr) {}
    uint32_t GetCoreNumAiv() const { return static_cast<uint32_t>(asc_platform(0)); }
    uint32_t GetCoreNumAic() const { return static_cast<uint32_t>(asc_platform(1)); }
    uint32_t GetCoreNum() const { return GetCoreNumAic(); }
    uint32_t GetCoreNumVector() const { return 0; }
    SocVersion GetSocVersion() const { return SocVersion::ASCEND910B; }
    uint32_t CalcTschBlockDim(uint32_t slices, uint32_t aic, uint32_t aiv) const {
        return aic && aiv > aic ? (slices + 1) / 2 : slices;
    }
    uint32_t GetLibApiWorkSpaceSize() const { return 16 << 20; }
    void GetCoreMemSize(CoreMemType type, uint64_t &size) const {
        switch (type) {
            case CoreMemType::UB: size = asc_platform(2); break;
            case CoreMemType::L1: size = asc_platform(3); break;
            case CoreMemType::L0_A:
            case CoreMemType::L0_B: size = 64 << 10; break;
            case CoreMemType::L0_C: size = 128 << 10; break;
            default: size = 192u << 20; break;
        }
    }
};

class PlatformAscendCManager {
public:
    static PlatformAscendC *GetInstance() {
        // The platform has no state: any object can represent it.
        static const char place = 0;
        return reinterpret_cast<PlatformAscendC *>(const_cast<char *>(&place));
    }
    static PlatformAscendC *GetInstance(const char *) { return GetInstance(); }
};

}  // namespace platform_ascendc
