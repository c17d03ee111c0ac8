// Runs the controller at 1 kHz on a simulated arm: first holding it against gravity, then along a swing of all joints.
#include <algorithm>
#include <cstdio>

#include "computed_torque.hpp"

int main()
{
    ComputedTorque controller;
    ComputedTorque::Joints q{}, v{}, a{}, tau{};
    if (controller.on_init() != controller_interface::CallbackReturn::SUCCESS) {
        return 1;
    }
    if (controller.state_interface_configuration().names.size() != 2 * ARM_NV) {
        return 1;
    }
    for (auto * state : {&q, &v}) {
        for (double & x : *state) {
            controller.state_interfaces_.push_back({&x});
        }
    }
    for (double & x : tau) {
        controller.command_interfaces_.push_back({&x});
    }
    for (std::size_t i = 0; i < ARM_NV; ++i) {
        q[i] = 0.1 * static_cast<double>(i + 1);
    }
    if (controller.update({}, {}) != controller_interface::return_type::OK) {
        return 1;
    }
    std::printf("holding");
    for (double x : tau) {
        std::printf(" %.17g", x);
    }
    const double step = 1e-3;
    double worst = 0.0;
    controller.reference.given = true;
    for (int k = 0; k < 2000; ++k) {
        const double t = k * step;
        for (std::size_t i = 0; i < ARM_NV; ++i) {
            const double w = 2.0 + 0.3 * static_cast<double>(i);
            controller.reference.q[i] = 0.1 * static_cast<double>(i + 1) + 0.5 * (1.0 - std::cos(w * t));
            controller.reference.v[i] = 0.5 * w * std::sin(w * t);
            controller.reference.a[i] = 0.5 * w * w * std::cos(w * t);
            worst = std::max(worst, std::abs(controller.reference.q[i] - q[i]));
        }
        if (controller.update({}, {}) != controller_interface::return_type::OK) {
            return 1;
        }
        if (arm_forward_dynamics(q.data(), v.data(), tau.data(), a.data()) != 0) {
            return 1;
        }
        for (std::size_t i = 0; i < ARM_NV; ++i) {
            v[i] += step * a[i];
            q[i] += step * v[i];
        }
    }
    std::printf("\nworst %.6g\n", worst);
    return 0;
}
