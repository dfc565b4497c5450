// SPDX-License-Identifier: BSD-2-Clause
/* The process at the other end: dat_opendat_peer. */
#ifndef CORE_PEER_H
#define CORE_PEER_H

#include <dat/opendat.h>

DAT_RETURN core_peer(DAT_HANDLE handle, DAT_OPENDAT_PEER *peer);

#endif
