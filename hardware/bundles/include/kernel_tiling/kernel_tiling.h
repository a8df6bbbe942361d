#pragma once
#include "../kernel_gym_host.h"
