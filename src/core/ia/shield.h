// SPDX-License-Identifier: BSD-2-Clause
/*
 * The entry points of the provider table that run with cancellation off (shield.c). Each has the
 * type of the call that it covers.
 */
#ifndef CORE_SHIELD_H
#define CORE_SHIELD_H

#include "core/base/calls.h"

#define CORE_SHIELD_DECLARE(name) __typeof__(core_##name) shield_##name;
CORE_CONTROL_CALLS(CORE_SHIELD_DECLARE)
CORE_SHIELD_DECLARE(ia_open_safe)
CORE_SHIELD_DECLARE(ia_open_unsafe)
#undef CORE_SHIELD_DECLARE

#endif
