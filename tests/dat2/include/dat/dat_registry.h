// SPDX-License-Identifier: BSD-2-Clause
#include <dat2/dat_registry.h>
