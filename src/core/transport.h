// SPDX-License-Identifier: BSD-2-Clause
/*
 * The headers of the core for transports: the table of operations that a transport fills, and the
 * functions of the core that it calls. docs/transports.md describes both. No folder of the
 * core includes this header.
 *
 *   base/transport_ops.h   the table, and the rules for both directions
 *   ep/ep.h                endpoints, requests and Receives; core_ep_enter, core_ep_leave
 *   ep/complete.h          completing requests and Receives
 *   ep/bind.h              executing a bind
 *   conn/conn.h            connections and connection requests
 *   srq/srq.h              shared receive queues
 *   event/async.h          asynchronous events
 *   mem/mem.h              the table of registered memory
 */
#ifndef CORE_TRANSPORT_H
#define CORE_TRANSPORT_H

#include "core/base/transport_ops.h"
#include "core/conn/conn.h"
#include "core/ep/bind.h"
#include "core/ep/complete.h"
#include "core/ep/ep.h"
#include "core/event/async.h"
#include "core/mem/mem.h"
#include "core/srq/srq.h"

#endif
