// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a transport includes of the core: the table of operations that it fills, and the calls up.
 * docs/transports.md walks through both. No room of the core includes this.
 *
 *   base/transport_ops.h   the table, and the rules of both directions
 *   ep/ep.h                endpoints, requests and Receives; core_ep_enter, core_ep_leave
 *   ep/complete.h          a request or a Receive is finished
 *   ep/bind.h              a bind has its turn
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
