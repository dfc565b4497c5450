// SPDX-License-Identifier: BSD-2-Clause
/* The attributes of an endpoint: defaults and checks. */
#ifndef CORE_EP_ATTR_H
#define CORE_EP_ATTR_H

#include "core/base/instance.h"
#include "core/base/refuse.h"

/* `arg` is the parameter that errors name. */
void core_ep_attr_defaults(struct core_ia *ia, bool has_recv, bool has_request,
			   DAT_EP_ATTR *attr_out);
/* dat_opendat_ep_attr_default */
DAT_RETURN core_ep_attr_default(DAT_IA_HANDLE ia_handle, DAT_EP_ATTR *ep_attr);
void core_ep_attr_fill(struct core_ia *ia, DAT_EP_ATTR *attr);
DAT_RETURN core_ep_attr_check(struct core_ia *ia, const DAT_EP_ATTR *attr, bool has_srq,
			      const struct core_arg *arg);
DAT_RETURN core_ep_attr_check_requests(const DAT_EP_ATTR *attr, bool has_request,
				       const struct core_arg *arg);
DAT_RETURN core_ep_attr_check_pairs(const DAT_EP_ATTR *attr, bool has_recv, bool has_request,
				    const struct core_arg *arg);

#endif
