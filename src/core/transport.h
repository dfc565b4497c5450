// SPDX-License-Identifier: BSD-2-Clause
/*
 * The headers of the core for transports: the table of operations that a transport fills, and the
 * functions of the core that it calls. docs/transports.md describes both. No folder of the
 * core includes this header.
 *
 *   base/transport_ops.h   the table, and the rules for both directions
 *   ep/ep.h                endpoints, requests and Receives; core_ep_enter, core_ep_leave
 *   ep/ep_queue.h          completing requests and Receives
 *   ep/bind.h              executing a bind
 *   conn/ep_conn.h         connections
 *   conn/sp.h              connection requests
 *   srq/srq.h              shared receive queues
 *   event/evd_queue.h      asynchronous events
 *   mem/mem.h              the table of registered memory
 */
#ifndef CORE_TRANSPORT_H
#define CORE_TRANSPORT_H

#include "core/base/transport_ops.h"
#include "core/conn/ep_conn.h"
#include "core/conn/sp.h"
#include "core/ep/bind.h"
#include "core/ep/ep_queue.h"
#include "core/ep/ep.h"
#include "core/event/evd_queue.h"
#include "core/mem/mem.h"
#include "core/srq/srq.h"

#endif
