// SPDX-License-Identifier: BSD-2-Clause
#include <dat/udat.h>
#include_next <dat/opendat.h>
