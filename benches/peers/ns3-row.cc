// A NewReno row of python/cwnd/studies/peers/recorded/ns3-classic.csv over CoDel in ns-3 itself,
// to find the cause of a difference. Flow i starts at i · SPACING. Prints, after a warm-up of 30 s:
// goodput of each flow and of all in Mbit/s, drops, marks.
//
//   c++ -std=c++17 -o ns3-row benches/peers/ns3-row.cc -lns3-core -lns3-network -lns3-internet \
//       -lns3-point-to-point -lns3-applications -lns3-traffic-control
//   ./ns3-row --flows=2 --spacing=0.2

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>
#include <vector>

using namespace ns3;

namespace {

constexpr uint32_t kSegment = 1448;
constexpr double kWarmup = 30;
constexpr double kEnd = 120;

}  // namespace

int main(int argc, char* argv[]) {
  uint32_t flows = 2;
  double rtt_ms = 100;
  double spacing = 0.1;
  bool ecn = false;
  CommandLine line(__FILE__);
  line.AddValue("flows", "number of transfers", flows);
  line.AddValue("rtt", "propagation round-trip time, ms", rtt_ms);
  line.AddValue("spacing", "time between starts, s", spacing);
  line.AddValue("ecn", "whether flows and queue use ECN", ecn);
  line.Parse(argc, argv);

  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
  Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kSegment));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));
  if (ecn) {
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
  }

  NodeContainer nodes;
  nodes.Create(4);
  PointToPointHelper access;
  access.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
  access.SetChannelAttribute("Delay", StringValue("1ms"));
  PointToPointHelper middle;
  middle.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
  middle.SetChannelAttribute("Delay", TimeValue(MicroSeconds(static_cast<int64_t>(rtt_ms * 500 - 2000))));
  middle.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
  const auto near = access.Install(nodes.Get(0), nodes.Get(1));
  const auto bottleneck = middle.Install(nodes.Get(1), nodes.Get(2));
  const auto far = access.Install(nodes.Get(2), nodes.Get(3));
  InternetStackHelper().Install(nodes);

  TrafficControlHelper wide;
  wide.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("100000p"));
  TrafficControlHelper codel;
  codel.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue("1000p"), "UseEcn", BooleanValue(ecn));
  const auto queue = codel.Install(bottleneck.Get(0)).Get(0);
  wide.Install(bottleneck.Get(1));
  wide.Install(near);
  wide.Install(far);

  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  addresses.Assign(near);
  addresses.NewNetwork();
  addresses.Assign(bottleneck);
  addresses.NewNetwork();
  const auto interfaces = addresses.Assign(far);
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  std::vector<Ptr<PacketSink>> sinks;
  for (uint32_t i = 0; i < flows; ++i) {
    const auto port = static_cast<uint16_t>(1024 + i);
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), port));
    source.SetAttribute("SendSize", UintegerValue(kSegment));
    source.Install(nodes.Get(0)).Start(Seconds(i * spacing));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    sinks.push_back(DynamicCast<PacketSink>(sink.Install(nodes.Get(3)).Get(0)));
  }

  std::vector<uint64_t> received(flows);
  QueueDisc::Stats before;
  Simulator::Schedule(Seconds(kWarmup), [&] {
    for (uint32_t i = 0; i < flows; ++i) {
      received[i] = sinks[i]->GetTotalRx();
    }
    before = queue->GetStats();
  });
  Simulator::Stop(Seconds(kEnd));
  Simulator::Run();
  double total = 0;
  for (uint32_t i = 0; i < flows; ++i) {
    const double goodput = (sinks[i]->GetTotalRx() - received[i]) * 8 / (kEnd - kWarmup) / 1e6;
    total += goodput;
    std::cout << goodput << ' ';
  }
  const auto after = queue->GetStats();
  std::cout << total << ' ' << after.nTotalDroppedPackets - before.nTotalDroppedPackets << ' '
            << after.nTotalMarkedPackets - before.nTotalMarkedPackets << std::endl;
  Simulator::Destroy();
}
